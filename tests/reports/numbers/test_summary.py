"""Summaries and prediction intervals, compared with SciPy and by simulation."""

import math
import statistics

import numpy as np
import pytest
import scipy.stats

from reports.numbers.summary import summarise


def test_a_summary_agrees_with_the_t_interval_of_scipy() -> None:
    values = [0.21, 0.19, 0.25, 0.20, 0.22]
    summary = summarise(values)
    interval = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert summary.n == 5
    assert summary.mean == pytest.approx(np.mean(values))
    assert summary.sd == pytest.approx(np.std(values, ddof=1))
    assert (summary.ci_low, summary.ci_high) == pytest.approx((interval.low, interval.high))
    expected = 2.776 * np.std(values, ddof=1) / math.sqrt(5)
    assert summary.half_width == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("n", [2, 3, 5, 25])
def test_mean_and_sd_are_correctly_rounded_for_any_values(n: int) -> None:
    rng = np.random.default_rng(n)
    corners = [0.1, -0.0, 5.0, 2.0**-1074, 1e-310, 1e300, -1e300]
    for _ in range(300):
        values = [float(v) for v in rng.normal(size=n) * 10.0 ** rng.integers(-9, 4, size=n)]
        if rng.random() < 0.5:
            values[0] = float(rng.choice(corners))
        summary = summarise(values)
        assert (summary.mean, summary.sd) == (statistics.mean(values), statistics.stdev(values))


def test_an_sd_halfway_between_two_floats_is_rounded_to_even() -> None:
    values = [-(2.0**53) - 2, -1.0, 2.0**53]  # sd 2^53 + 1
    assert summarise(values).sd == statistics.stdev(values) == 2.0**53


def test_equal_values_of_an_unbounded_metric_have_no_interval() -> None:
    summary = summarise([0.1, 0.1, 0.1])
    assert (summary.sd, summary.ci_low, summary.ci_high) == (0, None, None)


@pytest.mark.parametrize("values", [[], [0.1, math.nan], [math.inf]])
def test_a_summary_of_no_values_or_non_finite_values_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one value, all of them finite"):
        summarise(values)


@pytest.mark.parametrize("n", [3, 5])
def test_the_interval_of_a_summary_covers_the_truth_at_its_level(n: int) -> None:
    draws = np.random.default_rng(1).normal(0.2, 0.01, size=(4000, n))
    summaries = [summarise(list(map(float, row))) for row in draws]
    covered = np.mean([abs(s.mean - 0.2) <= (s.half_width or 0.0) for s in summaries])
    assert 0.93 <= covered <= 0.97
