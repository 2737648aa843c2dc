"""Effect sizes and detectable differences, against tables and by simulation."""

import math

import numpy as np
import pytest
import scipy.stats

from reports.numbers.effects import detectable_difference, effect_interval, hedges_factor, upper_sd


def test_the_effect_interval_agrees_with_a_published_example() -> None:
    low, high = effect_interval(1.68 * math.sqrt(5), 5)
    assert (low, high) == pytest.approx((0.23, 3.07), abs=0.005)


@pytest.mark.parametrize(("n", "factor"), [(5, 0.80), (10, 0.91)])
def test_hedges_factor_agrees_with_published_tables(n: int, factor: float) -> None:
    assert hedges_factor(n) == pytest.approx(factor, abs=0.005)


def test_hedges_factor_removes_the_bias_of_the_effect() -> None:
    draws = np.random.default_rng(2).normal(1.0, 1.0, size=(200_000, 5))
    d = draws.mean(axis=1) / draws.std(axis=1, ddof=1)
    assert d.mean() * hedges_factor(5) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("n", "comparisons", "printed"),
    [
        (5, 1, 1.68), (5, 2, 2.05), (5, 3, 2.29), (5, 6, 2.76),
        (10, 1, 1.00), (10, 2, 1.14), (10, 3, 1.22), (10, 6, 1.37),
        (20, 1, 0.66), (20, 2, 0.74), (20, 3, 0.78), (20, 6, 0.86),
    ],
)  # fmt: skip
def test_detectable_differences_agree_with_published_values(
    n: int, comparisons: int, printed: float
) -> None:
    assert detectable_difference(n, comparisons) == pytest.approx(printed, abs=0.005)


def test_a_detectable_difference_is_significant_in_80_percent_of_studies() -> None:
    truth = detectable_difference(5)
    draws = np.random.default_rng(3).normal(truth, 1.0, size=(20_000, 5))
    found = scipy.stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.01)


def test_the_upper_limit_of_the_sd_covers_the_true_sd_with_95_percent() -> None:
    draws = np.random.default_rng(6).normal(size=(40_000, 5)).std(axis=1, ddof=1)
    above = np.mean([upper_sd(1.0, 5) * sd >= 1 for sd in draws])
    assert above == pytest.approx(0.95, abs=0.005)
