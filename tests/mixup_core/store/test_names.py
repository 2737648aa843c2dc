"""Names: the path of each kind of file in a store, and the key in it."""

from collections.abc import Callable

import pytest

from mixup_core.store.names import (
    MANIFEST_NAME,
    PREDICTION_NAME,
    STATE_NAME,
    checked,
    failure_name,
    is_temporary,
    key_in,
    manifest_name,
    prediction_name,
    state_name,
    states_folder,
)
from tests.mixup_core.store.stored_files import KEY

SHA256 = "0f" * 32


def test_each_kind_of_file_has_a_folder_and_a_shard_of_its_own() -> None:
    assert manifest_name(KEY) == f"stages/01/{KEY}.json"
    assert states_folder(KEY) == "states/01"
    assert state_name(KEY, SHA256) == f"states/01/{KEY}-{SHA256}.bin"
    assert prediction_name(KEY) == f"predictions/01/{KEY}.bin"
    assert failure_name(KEY) == f"failures/{KEY}.json"


@pytest.mark.parametrize("key", ["aa01", "0" * 64, KEY])
def test_a_key_of_4_to_64_hexadecimal_digits_is_accepted(key: str) -> None:
    assert checked(key) == key


@pytest.mark.parametrize(
    "use",
    [
        checked, manifest_name, states_folder, failure_name, prediction_name,
        lambda key: state_name(key, SHA256),
    ],
)  # fmt: skip
def test_a_key_that_is_not_a_hash_is_refused(use: Callable[[str], str]) -> None:
    for key in (
        "", "aa0", "a" * 65, "AA01", "aa0g", "aa01\n", "\naa01", "aa01 ", "aa01.json", "../../etc",
        "aa01/..", "\N{ARABIC-INDIC DIGIT ONE}" * 4, "\N{FULLWIDTH DIGIT ONE}" * 4,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="hexadecimal") as caught:
            use(key)
        assert f"got ({key=})" in str(caught.value)


def test_the_name_pattern_of_a_kind_matches_only_names_of_this_kind() -> None:
    patterns = {
        manifest_name: MANIFEST_NAME,
        prediction_name: PREDICTION_NAME,
        lambda key: state_name(key, SHA256): STATE_NAME,
    }
    for name_of, pattern in patterns.items():
        name = name_of(KEY)
        found = pattern.fullmatch(name)
        assert found is not None
        assert found["key"] == KEY
        others = [other(KEY) for other in patterns if other is not name_of]
        for strange in (
            *others, f"{name}.x1.tmp", f"{name}.0a1b2c3d.torn", f"old/{name}", name.upper(),
            name.replace("/01/", "/"), name.replace("/01/", "/012/"), name.replace(".", "x"),
            name.replace(KEY, f"{KEY}g"), name.replace("/01/", "/02/"), name.replace(KEY, KEY[:3]),
            name.replace(KEY, f"{KEY}{64 * '0'}"),
        ):  # fmt: skip
            assert pattern.fullmatch(strange) is None, strange


def test_a_state_name_without_a_whole_lower_case_sha256_does_not_match() -> None:
    for sha256 in (SHA256[1:], f"{SHA256}0", SHA256.upper()):
        assert STATE_NAME.fullmatch(f"states/01/{KEY}-{sha256}.bin") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{manifest_name(KEY)}.x1y2z3_4.tmp", True),
        (f"{failure_name(KEY)}.x1y2z3_4.tmp", True),
        ("uses/digits.json.x1y2z3_4.tmp", True),
        (manifest_name(KEY), False),
        (f"{manifest_name(KEY)}.draft.tmp", False),
        ("stages/01/notes.x1y2z3_4.tmp", False),
    ],
)
def test_a_temporary_file_has_a_name_of_the_store_and_a_temporary_ending(
    name: str, expected: bool
) -> None:
    assert is_temporary(name) is expected


@pytest.mark.parametrize(
    "name",
    [
        manifest_name(KEY),
        f"{manifest_name(KEY)}.x1.tmp",
        state_name(KEY, SHA256),
        f"{state_name(KEY, SHA256)}.0a1b2c3d.torn",
        f"{state_name(KEY, SHA256)}.x1.tmp",
        prediction_name(KEY),
        failure_name(KEY),
    ],
)
def test_key_in_finds_the_key_in_names_of_leftover_files(name: str) -> None:
    assert key_in(name) == KEY
