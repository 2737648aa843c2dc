import pickle
from dataclasses import replace

import pytest

from mixup_core.config.parts import leaves
from mixup_core.problem import (
    PROBLEMS,
    DivergedError,
    all_data_needs,
    problem_named,
)


@pytest.mark.parametrize("name", PROBLEMS)
def test_paths_and_metrics_that_a_problem_names_exist(name: str) -> None:
    problem = problem_named(name)
    known, keying = set(leaves(problem.config)), problem.keying
    assert set(problem.searching.unsearchable) <= known
    assert set(problem.reading.reserved) <= known
    assert set(keying.stands_for.values()) <= known
    assert set(problem.headline) <= set(problem.metrics)
    assert set(problem.searching.objectives) <= set(problem.metrics)
    assert {metric for panel in problem.presentation.curves for metric in panel} <= set(
        problem.metrics
    )


def test_dataset_names_are_distinct() -> None:
    needs = all_data_needs()
    asked = {problem_named(name).data for name in PROBLEMS} - {None}
    assert {problem_named(name).data for name in needs} == asked
    names = [found.name for each in needs.values() for found in each.sets()]
    assert len(names) == len(set(names)) > 0


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"law.": "because"}, "names law., but RareFeaturesConfig has no such field"),
        ({"law": " "}, "needs a reason"),
        ({"laws": "because"}, "names laws, but RareFeaturesConfig has no such field"),
    ],
)
@pytest.mark.parametrize("field", ["never", "by_epoch"])
def test_paths_left_out_of_keys_need_an_exact_name_and_a_reason(
    field: str, named: dict[str, str], message: str
) -> None:
    problem = problem_named("rare-features")
    with pytest.raises(ValueError, match=message):
        replace(problem, keying=replace(problem.keying, **{field: named}))


def test_a_diverged_error_is_pickled_with_its_epoch() -> None:
    again = pickle.loads(pickle.dumps(DivergedError("loss is nan", 7)))
    assert (type(again), str(again), again.epoch) == (DivergedError, "loss is nan", 7)


@pytest.mark.parametrize("name", PROBLEMS)
def test_bounds_of_every_metric_are_ordered_and_only_fractions_have_a_sample_size(
    name: str,
) -> None:
    problem = problem_named(name)
    needed = {"epochs": 1, "batch_size": 10} if name == "images" else {}
    config = problem.config(**needed)
    for metric, shown in {**problem.metrics, **problem.measuring.predicted}.items():
        least, most = shown.bounds
        assert least < most
        size = problem.measuring.sample_size(config, metric)
        assert size is None or (size >= 1 and (least, most) == (0, 1))
