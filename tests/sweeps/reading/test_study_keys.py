"""Study keys: each rule of a section is reported with its text and key."""

from typing import Any

import pytest

from mixup_core.problem import MAX_SEED
from sweeps.reading.study_keys import StudyKeys
from sweeps.study.search import Confirmation
from tests.sweeps.reading.study_files import broken

DISTINCT = "items of seeds must be distinct, and there must be at least one"
IN_RANGE = "0 <= each of seeds <= 2^63-1"


def a_study(**values: Any) -> StudyKeys:
    return StudyKeys(**{"study": "x", "base": {}, "seeds": 1} | values)


@pytest.mark.parametrize(
    ("seeds", "rule", "wrong"),
    [
        ((), DISTINCT, []),
        ((4, 5, 4, 5, 4), DISTINCT, [4, 5]),
        ((*range(9), *range(9)), DISTINCT, [0, 1, 2, 3, 4]),
        ((-1,), IN_RANGE, [-1]),
        ((0, MAX_SEED + 1), IN_RANGE, [MAX_SEED + 1]),
        (tuple(range(-9, 0)), IN_RANGE, [-9, -8, -7, -6, -5]),
    ],
)
def test_at_most_five_invalid_or_repeated_seeds_are_listed(
    seeds: tuple[int, ...], rule: str, wrong: list[int]
) -> None:
    for error in (broken(a_study, seeds=seeds), broken(Confirmation, seeds=seeds)):
        assert error.rule == rule
        assert (error.values, error.fields) == ({"seeds": wrong}, ("seeds",))
