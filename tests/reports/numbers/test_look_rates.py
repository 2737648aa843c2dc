import pytest

from tests.reports.numbers.look_rates import look_rates

STUDIES = 1_000
"""Number of studies; a true rate of 5 % is then above 7.2 % in 1 of 1,000 tests."""


@pytest.mark.parametrize(
    ("effect", "margin", "most_seeds"),
    [
        (0.0, None, 14.0),
        (0.0, 0.75, 17.0),
        (0.0, 1.0, 14.6),
        (0.3, None, 14.0),
        (0.5, None, 15.0),
        (0.75, 0.75, 15.0),
        (1.0, None, 12.0),
        (1.5, None, 8.0),
        (2.0, None, 6.7),
    ],
)
def test_planned_looks_have_a_low_error_rate_and_need_few_seeds(
    effect: float, margin: float | None, most_seeds: float
) -> None:
    found = look_rates(effect, margin, STUDIES)
    assert found.wrong <= 0.072
    assert found.covered >= 0.928
    assert found.seeds <= most_seeds
    if effect == 1:
        assert found.fixed is not None
        assert found.seeds / found.fixed <= 0.76
