"""Study keys: each rule of a section is reported with its text and key."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mixup_core.problem import MAX_SEED
from mixup_core.rules import RuleError
from sweeps.reading.study_keys import StudyKeys
from sweeps.study.search import Confirmation
from tests.sweeps.reading.study_files import SMALL, refusals

DISTINCT = "items of seeds must be distinct, and there must be at least one"
IN_RANGE = "0 <= each of seeds <= 2^63-1"
PLAIN = "must not contain control or text-direction characters"


def broken(make: Callable[..., Any], **values: Any) -> RuleError:
    """Return the rule that some values break."""
    with pytest.raises(RuleError) as caught:
        make(**values)
    return caught.value


def a_study(**values: Any) -> StudyKeys:
    return StudyKeys(**{"study": "x", "base": {}, "seeds": 1} | values)


# Name of the case: the file, and the one line it must give ("*" for any text after it).
BAD_FILES = {
    "name is a path": (SMALL.replace("study: x", "study: ../x"), "1: study: study must match *"),
    "description turns the text": (
        SMALL + 'description: "\\u202e"\n',
        f"4: description: description {PLAIN}, *",
    ),
    "description decomposed": (
        SMALL + 'description: "e\\u0301"\n',
        "4: description: description must be in Unicode normal form C, *",
    ),
    "seeds 0": (
        SMALL.replace("seeds: 2", "seeds: 0"),
        "3: seeds: `seeds >= 1` must hold, got (seeds=0).",
    ),
    "equivalence 0": (
        SMALL + "equivalence: 0\n",
        "4: equivalence: `0 < equivalence < inf` must hold, got (equivalence=0.0).",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_invalid_values_of_a_study_are_refused_with_line_path_and_rule(
    tmp_path: Path, case: str
) -> None:
    text, expected = BAD_FILES[case]
    (line,) = refusals(tmp_path, text)
    assert line.startswith(expected.removesuffix("*"))
    assert expected.endswith("*") or line == expected


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
