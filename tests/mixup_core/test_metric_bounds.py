"""Bounds and sample sizes of metrics, which decide how claims are tested."""

import math

import pytest

from mixup_core.problem import PROBLEMS, Metric, problem_named


def test_percentages_have_bounds_0_and_1_and_other_metrics_their_declared_bounds() -> None:
    assert Metric(label="error", unit="%").bounds == (0, 1)
    assert Metric(label="norm", least=0.0).bounds == (0, math.inf)
    assert Metric(label="cosine", least=-1.0, most=1.0).bounds == (-1, 1)
    assert Metric(label="anything").bounds == (-math.inf, math.inf)


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
