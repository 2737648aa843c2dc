import pytest

from sweeps.leasing.holders import checked


@pytest.mark.parametrize(
    "study", ["", "../x", "a/b", "a.b", "a_b", "Table1", "\u00e9", "a" * 101, "a\n", " a", "-a"]
)
def test_an_invalid_study_name_is_refused(study: str) -> None:
    with pytest.raises(ValueError, match="study must match") as caught:
        checked(study)
    assert str(caught.value) == (
        f"study must match [a-z0-9][a-z0-9-]{{0,99}}, got (study={study!r})."
    )
