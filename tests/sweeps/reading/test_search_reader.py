from pathlib import Path

import pytest

from sweeps.reading.study_file import StudyError
from sweeps.study.budget import Budget
from tests.sweeps.small_searches import STUDY, assert_refused, read

# Name of the case: what is replaced in the study, by what, and the one line it must give.
BAD = {
    "test objective": (
        "val/error",
        "test/error",
        "16: search.objective: a search must use validation metrics *, got 'test/error'",
    ),
    "test among objectives": (
        "val/error",
        "[val/nll, test/nll]",
        "16: *a search must use validation metrics*",
    ),
    "unknown objective": ("val/error", "val/eror", "16: *(did you mean val/error?)"),
    "objective twice": (
        "val/error",
        "[val/error, val/error]",
        "16: *items of objective must be distinct*",
    ),
    "no objective": ("  objective: val/error\n", "", "11: search: missing key 'objective'"),
    "no points": ("  points: 6\n", "", "11: search: missing key 'points'"),
    "points of nothing": ("points: 6", "points: null", "11: search: missing key 'points'"),
    "unknown sampler": (
        "points: 6",
        "points: 6\n  sampler: tpa",
        "16: search.sampler: expected one of *, got text 'tpa' (did you mean tpe?)",
    ),
    "unknown key": (
        "points: 6",
        "points: 6\n  prunes: 1",
        "16: *: unknown key 'prunes' (did you mean prune?)",
    ),
    "pruning after all seeds": (
        "points: 6",
        "points: 6\n  prune: {after: 3}",
        "16: search.prune: `after < number of seeds` must hold, got (after=3, seeds=3).",
    ),
    "negative budget": (
        "points: 6",
        "points: 6\n  budget: {hours: -1}",
        "16: search.budget.hours: `hours > 0` must hold, got (hours=-1.0).",
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
    "more seeds than can be counted": (
        "seeds: 3",
        "seeds: 100000000000000000000",
        "10: seeds: the study has 200,000,000,000,000,000,000 runs in all; at most 100,000 *",
    ),
    "more seeds than a range can count": (
        "seeds: 3",
        "seeds: 0..9223372036854775806",
        "10: seeds: the study has 18,446,744,073,709,551,614 runs in all; at most 100,000 *",
    ),
    "too many runs": (
        "seeds: 3",
        "seeds: 30000",
        "11: search: the study has 240,000 runs in all; at most 100,000 are allowed",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_searches_are_refused_with_line_path_and_rule(tmp_path: Path, case: str) -> None:
    assert_refused(tmp_path, *BAD[case])


def test_all_problems_of_a_file_are_listed_at_once(tmp_path: Path) -> None:
    text = STUDY.replace("points: 6", "points: 0").replace("val/error", "test/error")
    text = text.replace("[0.1, 32.0]", "[32.0, 0.1]").replace("law: erm}", "law: erm, lr: 1}")
    with pytest.raises(StudyError) as caught:
        read(tmp_path, text + "  prune: {after: 9}\n  budget: {hours: -1}\n  bogus: 1\n")
    paths = [problem.split(": ")[1] for problem in caught.value.faults]
    assert paths == [
        "arms.erm.lr",
        "search.space.mix.law.beta.log_uniform",
        "search.points",
        "search.objective",
        "search.prune",
        "search.budget.hours",
        "search.bogus",
    ]


def test_null_disables_a_part_of_a_search(tmp_path: Path) -> None:
    on = STUDY + "  prune: {after: 2}\n  budget: {hours: 2}\n  confirm: {seeds: [9]}\n"
    search = read(tmp_path, on).search
    assert search is not None
    strategy = search.strategy
    assert (strategy.prune_after, strategy.confirm_seeds) == (2, (9,))
    assert search.budget == Budget(hours=2)
    off = [f"search.{part}=null" for part in ("prune", "budget", "confirm")]
    assert read(tmp_path, on, *off).search == read(tmp_path).search


def test_search_runs_have_no_test_images(tmp_path: Path) -> None:
    study = read(tmp_path)
    assert all(not run.config.data.test for run in study.runs())
    assert all(run.config.data.val_size == 200 for run in study.runs())


def test_both_parameters_of_an_asymmetric_law_can_be_searched(tmp_path: Path) -> None:
    old = "{beta: {log_uniform: [0.1, 32.0]}}"
    new = "{beta: {a: {log_uniform: [0.1, 32.0]}, b: 2.0}}"
    search = read(tmp_path, STUDY.replace(old, new)).search
    assert search is not None
    assert [p.path for p in search.space.parameters][:2] == ["mix.law.a", "mix.law.b"]
    assert type(search.base.mix.law).__name__ == "BetaAb"


def test_a_search_can_choose_between_both_beta_laws(tmp_path: Path) -> None:
    old = "{beta: {log_uniform: [0.1, 32.0]}}"
    both = "[{beta: {log_uniform: [0.1, 32]}}, {beta: {a: {log_uniform: [0.1, 32]}, b: 2}}]"
    search = read(tmp_path, STUDY.replace(old, f"{{categorical: {both}}}")).search
    assert search is not None
    assert search.space.parameters[0].distribution.choices == ("beta", "beta-ab")  # type: ignore[union-attr]
