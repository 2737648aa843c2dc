"""Study keys: each rule of a section is reported with its text and key."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mixup_core.problem import MAX_SEED
from mixup_core.rules import RuleError
from sweeps.reading.study_file import StudyError
from sweeps.reading.study_keys import EntryKeys, StudyKeys
from sweeps.study.budget import Budget
from sweeps.study.search import Confirmation
from sweeps.study.space import Integer, Real
from tests.sweeps.reading.study_files import SMALL, read, refusals
from tests.sweeps.small_searches import STUDY, assert_refused

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


UNSEEN = (
    "\0\b\v\f\r\x1b\x1f\x7f\x80\x9f\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ufeff"
)
SEEN = "\t\n ~\xa0é\u2027\u202f\u200d\u65e5"


def test_a_description_with_control_or_text_direction_characters_is_refused() -> None:
    for letter in UNSEEN:
        error = broken(a_study, description=f"a{letter}b")
        assert error.rule == f"description {PLAIN}"
        assert error.fields == ("description",)
    assert a_study(description=SEEN).description == SEEN


def test_a_range_of_seeds_includes_both_ends(tmp_path: Path) -> None:
    assert a_study(seeds="3..5").listed_seeds() == range(3, 6)
    assert a_study(seeds=f"{MAX_SEED}..{MAX_SEED}").listed_seeds() == range(MAX_SEED, MAX_SEED + 1)
    assert read(tmp_path, SMALL.replace("seeds: 2", "seeds: 7..9")).seeds == (7, 8, 9)


@pytest.mark.parametrize("seeds", ["5..3", f"0..{MAX_SEED + 1}", "1..", "-1..2", "a", "1...2"])
def test_text_other_than_a_range_of_seeds_is_refused(seeds: str) -> None:
    assert broken(a_study, seeds=seeds).fields == ("seeds",)


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


def test_the_budget_of_a_search_is_inside_search_and_has_no_run_limit(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="budget: a study with a search must have its budget in"):
        read(tmp_path, STUDY + "budget: {hours: 1}\n")
    with pytest.raises(
        StudyError,
        match=r"search\.budget: budget.runs must be absent in a search",
    ):
        read(tmp_path, STUDY + "  budget: {runs: 9}\n")
    assert a_study(budget=Budget(runs=9)).budget == Budget(runs=9)
    assert broken(a_study, budget=Budget(), search={}).fields == ("budget",)


def test_an_entry_is_a_distribution_between_bounds_or_a_choice() -> None:
    assert EntryKeys(uniform=(0.0, 1.0)).range() == Real(low=0.0, high=1.0, is_log=False)
    assert EntryKeys(log_uniform=(0.1, 1.0), values=3).range() == Real(
        low=0.1, high=1.0, is_log=True, num_values=3
    )
    assert EntryKeys(int=(0, 4)).range() == Integer(low=0, high=4, step=1)
    assert EntryKeys(int=(0, 4), step=2).range() == Integer(low=0, high=4, step=2)
    assert EntryKeys(categorical=["a", "b"]).range() is None
    assert EntryKeys().range() is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "val/error",
            "[val/error, val/nll]\n  prune: {after: 2}",
            "17: search.prune: prune compares points by one number: it needs a single "
            "objective, got *",
        ),
        (
            "val/error",
            "[val/error, val/nll]\n  sampler: cmaes",
            "17: search.sampler: sampler cmaes needs a single objective, got (sampler='cmaes').",
        ),
    ],
)
def test_an_invalid_search_is_refused_at_its_key(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert_refused(tmp_path, old, new, expected)


def test_a_grid_search_with_a_budget_or_warm_start_is_refused(tmp_path: Path) -> None:
    grid = STUDY.replace("32.0]", "32.0], values: 3").replace("points: 6", "sampler: grid")
    with pytest.raises(StudyError, match=r"search\.budget: budget must be absent with sampler"):
        read(tmp_path, grid + "  budget: {hours: 1}\n")
    with pytest.raises(
        StudyError,
        match=r"search\.warm_start: warm_start must be absent with sampler grid",
    ):
        read(tmp_path, grid + "  warm_start: true\n")
