from pathlib import Path

import pytest

from sweeps.study.budget import Budget
from tests.sweeps.small_searches import STUDY, assert_refused, read

# Name of the case: what is replaced in the study, by what, and the one line it must give.
BAD = {
    "test objective": (
        "val/error",
        "test/error",
        "16: search.objective: a search must use validation metrics *, got 'test/error'",
    ),
    "objective twice": (
        "val/error",
        "[val/error, val/error]",
        "16: *items of objective must be distinct*",
    ),
    "points of nothing": ("points: 6", "points: null", "11: search: missing key 'points'"),
    "pruning after all seeds": (
        "points: 6",
        "points: 6\n  prune: {after: 3}",
        "16: search.prune: `after < number of seeds` must hold, got (after=3, seeds=3).",
    ),
    "confirmed by a seed of the search": (
        "points: 6",
        "points: 6\n  confirm: {seeds: [2]}",
        "16: search.confirm: must not be seeds of the study, got [2]",
    ),
    "no validation images": (
        ", val_size: 200",
        "",
        "3: base.data.val_size: a search needs held-out images: set data.val_size or *",
    ),
    "test images": (
        "val_size: 200",
        "val_size: 200, test: true",
        "3: base.data.test: data.test must be False in a search, got (data.test=True); *",
    ),
    "grid beside it": (
        "seeds: 3",
        "seeds: 3\ngrid: {batch_size: [64, 128]}",
        "11: grid: a study cannot have both a grid and a search*",
    ),
    "no arms": (
        "arms:\n  erm: {mix.law: erm}\n  uniform: {mix.law: {beta: 1.0}}\n",
        "",
        "8: search: a search needs `arms`*",
    ),
    "more seeds than a range can count": (
        "seeds: 3",
        "seeds: 0..9223372036854775806",
        "10: seeds: the study has 18,446,744,073,709,551,614 runs in all; at most 100,000 *",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_searches_are_refused_with_line_path_and_rule(tmp_path: Path, case: str) -> None:
    assert_refused(tmp_path, *BAD[case])


def test_null_disables_a_part_of_a_search(tmp_path: Path) -> None:
    on = STUDY + "  prune: {after: 2}\n  budget: {hours: 2}\n  confirm: {seeds: [9]}\n"
    search = read(tmp_path, on).search
    assert search is not None
    strategy = search.strategy
    assert (strategy.prune_after, strategy.confirm_seeds) == (2, (9,))
    assert search.budget == Budget(hours=2)
    off = [f"search.{part}=null" for part in ("prune", "budget", "confirm")]
    assert read(tmp_path, on, *off).search == read(tmp_path).search
