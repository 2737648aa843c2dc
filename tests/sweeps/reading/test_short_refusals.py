"""Refusals of study files: each fault is short, and its first line names place, key and value."""

from collections.abc import Iterator

import pytest

from mixup_core.problem import PROBLEMS, problem_named
from sweeps.machine.terminal_text import wrapped
from sweeps.reading.study_file import StudyError, study_of
from sweeps.reading.tree_paths import config_paths

COLUMNS, LINES = 100, 5
WRONG = ("nonesuch", -7, {"nonesuch": 1}, ["nonesuch"], None, "")
"""A name, a number, a mapping, a list, nothing and an empty text: each wrong for most fields."""


def faults_of(problem: str, path: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield each fault of a study with a wrong value, with the same fault in full."""
    document = {"study": "s", "problem": problem, "base": {}, "arms": {"a": {path: value}}}
    try:
        study_of(document | {"seeds": 1})
    except StudyError as error:
        yield from zip(error.faults, error.whole, strict=True)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_refusal_of_a_wrong_value_is_longer_than_five_lines(problem: str) -> None:
    paths, count = config_paths(problem_named(problem)), 0
    every = (*paths.leaves, *paths.groups, "nonesuch", "base.nonesuch")
    for place, path in enumerate(every):
        for fault, whole in faults_of(problem, path, WRONG[place % len(WRONG)]):
            count += 1
            lines = wrapped(fault, COLUMNS).splitlines()
            assert len(lines) <= LINES, fault
            assert lines[0].startswith("study: ")
            assert len(fault) <= len(whole) or "`mixsweep plan --all`" in fault
    assert count > 10


def test_a_message_lists_thirty_faults_and_counts_the_others() -> None:
    with pytest.raises(StudyError) as caught:
        study_of({"study": "s", "base": {}, **{f"nonesuch{n}": 1 for n in range(5000)}})
    *_, last = lines = str(caught.value).splitlines()
    assert len(lines) == 31
    assert last == f"... {len(caught.value.faults) - 30:,} more faults"
    assert len(caught.value.faults) > 5000
