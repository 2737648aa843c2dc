from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mixup_core.images.config import MixConfig
from mixup_core.laws import Beta, Erm
from sweeps.study.budget import Budget
from sweeps.study.search import (
    MAX_POINTS,
    Patience,
    Point,
    SearchHistory,
    SearchStrategy,
)
from sweeps.study.space import MAX_INTEGER, Integer, Parameter, Space
from tests.sweeps.reading.study_files import broken
from tests.sweeps.small_searches import STUDY, read


def test_a_point_becomes_a_configuration_through_its_dotted_paths(tmp_path: Path) -> None:
    text = STUDY.replace(
        "{beta: {log_uniform: [0.1, 32.0]}}", "{categorical: [midpoint, {beta: 2.0}]}"
    )
    search = read(tmp_path, text).search
    config = search.config_of({"mix.law": "beta", "mix.law.alpha": 2.0, "mix.switch_epoch": 4})
    assert config.mix == MixConfig(law=Beta(alpha=2.0), switch_epoch=4, law_after=Erm())


def test_states_are_kept_only_where_a_later_point_can_fork(tmp_path: Path) -> None:
    def epochs(law: str, switch: int) -> frozenset[int]:
        text = STUDY.replace("{beta: {log_uniform: [0.1, 32.0]}}", law)
        search = read(tmp_path, text.replace("step: 2", "step: 5")).search
        return search.fork_epochs({"mix.law.alpha": 2.0, "mix.switch_epoch": switch})

    discrete = "{beta: {categorical: [2.0, 4.0]}}"
    assert epochs(discrete, 10) == {5, 10}
    assert epochs(discrete, 20) == {5, 10, 15}
    assert epochs("{beta: {log_uniform: [1.0, 4.0]}}", 10) == frozenset()
    endless = Parameter(path="batch_size", distribution=Integer(low=1, high=MAX_INTEGER))
    search = read(tmp_path, STUDY).search
    wide = replace(search, space=Space(parameters=(endless,)))
    assert wide.fork_epochs({"batch_size": 1}) == frozenset()


def test_a_search_proposes_points_until_it_is_complete_or_ended(tmp_path: Path) -> None:
    search = read(tmp_path, STUDY, "search.points=2").search
    closed = Point(number=0, values={}, state="complete", objectives=(0.1,))
    still_open = Point(number=1, values={}, state="open")
    assert SearchHistory(points=(closed,)).asks(search)
    assert not SearchHistory(points=(closed,), ended="used up its budget").asks(search)
    assert not SearchHistory(points=(closed, still_open)).asks(search)


def test_a_grown_study_keeps_the_order_of_its_runs(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY + "  confirm: {seeds: [100]}\n")
    values = {"mix.law.alpha": 2.0, "mix.switch_epoch": 4}
    first = Point(number=0, values=values, state="complete", objectives=(0.1,))
    second = Point(number=1, values={**values, "mix.switch_epoch": 6}, state="open")
    one, two = study.grown([first]), study.grown([first, second])
    assert two.runs()[: len(one.runs())] == one.runs()
    assert one.runs()[: len(study.runs())] == study.runs()
    assert two.points() == ("point 0", "point 1")
    confirmed = study.grown([first], first).confirmation()
    assert [(run.arm, run.seed) for run in confirmed.runs()] == [
        ("erm", 100), ("uniform", 100), ("point 0", 100),
    ]  # fmt: skip
    assert study.confirmation() is None


BOTH = {"objective": ("val/error", "val/nll")}
OF_SEVERAL = "compares points by one number: it needs a single objective"
BUDGET = "budget.runs must be absent in a search; limit its points instead"
OF_A_GRID = "must be absent with sampler grid, which tries every point"


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"points": 0}, f"1 <= points <= {MAX_POINTS}"),
        ({"points": MAX_POINTS + 1}, f"1 <= points <= {MAX_POINTS}"),
        ({"seed": -1}, "0 <= seed <= 2^31-1"),
        (BOTH | {"prune": Patience(after=2)}, f"prune {OF_SEVERAL}"),
        (BOTH | {"stop": Patience(after=2)}, f"stop {OF_SEVERAL}"),
        (BOTH | {"sampler": "cmaes"}, "sampler cmaes needs a single objective"),
        ({"sampler": "grid", "stop": Patience(after=2)}, f"stop {OF_A_GRID}"),
        ({"sampler": "grid", "points": 3}, f"points {OF_A_GRID}"),
        ({"sampler": "grid", "warm_start": True}, f"warm_start {OF_A_GRID}"),
        ({"sampler": "grid", "budget": Budget(gpu_hours=1)}, f"budget {OF_A_GRID}"),
        ({"budget": Budget(runs=1)}, BUDGET),
    ],
)
def test_parts_of_a_search_that_contradict_each_other_are_refused(
    given: dict[str, Any], rule: str
) -> None:
    error = broken(SearchStrategy, **{"objective": "val/error"} | given)
    assert (error.rule, error.fields) == (rule, (list(given)[-1],))
