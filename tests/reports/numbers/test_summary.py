"""Tests of summaries over seeds: moments, intervals, and exact intervals of fractions."""

import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
import scipy.stats

from reports.numbers.comparison import compare, contrast
from reports.numbers.summary import (
    Measure,
    chi_square_quantile,
    least_variance,
    sampling_noise,
    share_limits,
    smallest_step,
    summarise,
    summarise_runs,
)


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


@pytest.mark.parametrize("ends", [(-math.inf, math.inf), (0.5, 0.5), (1.0, 0.0), (-1e308, 1e308)])
def test_equal_values_between_bounds_without_a_finite_width_have_no_interval(
    ends: tuple[float, float],
) -> None:
    summary = summarise([0.5, 0.5, 0.5], Measure(least=ends[0], most=ends[1]))
    assert (summary.sd, summary.ci_low, summary.ci_high) == (0, None, None)


def test_an_interval_is_cut_at_the_only_finite_end_of_a_range() -> None:
    values, nll = [0.01, 0.02, 0.5], Measure(least=0.0)
    high = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95).high
    summary = summarise(values, nll)
    assert (summary.ci_low, summary.ci_high) == (0.0, pytest.approx(high))
    assert summary.half_width is None, "it is not symmetric"
    found = contrast([(-2.0, dict(enumerate(values)), nll)])
    assert (found.ci_low, found.ci_high) == (pytest.approx(-2 * high), 0.0)
    inside = summarise([0.4, 0.5, 0.6], Measure(least=0.0, most=1.0))
    assert inside == summarise([0.4, 0.5, 0.6])
    wide = summarise([-1.0, 0.5, 1.0])
    assert wide.half_width == pytest.approx((wide.ci_high - wide.ci_low) / 2)


def test_runs_are_summarised_in_the_metrics_of_all_runs() -> None:
    runs = [{"a": 0.1, "b": 1.0}, {"a": 0.3}]
    both = summarise([0.1, 0.3], CLASSES)
    columns = {"a_mean": both.mean, "a_sd": both.sd, "a_ci_low": both.ci_low}
    assert summarise_runs(runs, lambda _: CLASSES) == columns | {"a_ci_high": both.ci_high}
    assert summarise_runs(runs[:1]) == {"a_mean": 0.1, "b_mean": 1.0}
    assert summarise_runs([]) == {}


@pytest.mark.parametrize("level", [0.05, 0.5, 0.975])
def test_the_chi_square_quantile_agrees_with_scipy(level: float) -> None:
    assert chi_square_quantile(level, 5) == pytest.approx(scipy.stats.chi2.ppf(level, 5))


@pytest.mark.parametrize("values", [[], [0.1, math.nan], [math.inf]])
def test_a_summary_of_no_values_or_non_finite_values_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one value, all of them finite"):
        summarise(values)


CLASSES = Measure(least=0.0, most=1.0, size=6)


@pytest.mark.parametrize("confidence", [0.3, 0.95])
@pytest.mark.parametrize(("wrong", "total"), [(0, 30), (30, 30), (3, 30), (29, 30)])
def test_limits_without_extra_spread_are_clopper_pearson_limits(
    wrong: int, total: int, confidence: float
) -> None:
    found = share_limits(
        wrong / total, 0.0, 5, Measure(least=0, most=1, size=total // 5), confidence
    )
    exact = scipy.stats.binomtest(wrong, total).proportion_ci(confidence)
    assert found == pytest.approx((exact.low, exact.high))
    each_one = share_limits(wrong / total, 0.0, total, Measure(least=0, most=1), confidence)
    assert each_one == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize("size", [None, 200])
@pytest.mark.parametrize("sd", [0.02, 0.1, 0.3])
def test_limits_with_extra_spread_agree_with_korn_and_graubard(size: int | None, sd: float) -> None:
    """An unbounded number of items has the normal distribution in place of Student's t."""
    share, n, tail = 0.3, 5, 0.025
    items = math.inf if size is None else n * size
    shrunk = scipy.stats.t.isf(tail, items - 1) / scipy.stats.t.isf(tail, n - 1)
    effective = min(items, n * share * (1 - share) / sd**2 * shrunk**2)
    found = share * effective
    exact = (
        scipy.stats.beta.ppf(tail, found, effective - found + 1),
        scipy.stats.beta.isf(tail, found + 1, effective - found),
    )
    measure = Measure(least=0, most=1, size=size)
    assert share_limits(share, sd, n, measure, 0.95) == pytest.approx(exact)


def test_the_sampling_noise_of_a_fraction_follows_the_binomial_distribution() -> None:
    assert sampling_noise(0.3, 50) == pytest.approx(scipy.stats.binom(50, 0.3).std() / 50)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("sd", [0.0, 1e-300, 0.01, 0.2, 0.5])
@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("size", [None, 1, 6, 10_000])
def test_limits_have_a_width_contain_the_mean_and_stay_in_the_bounds(
    share: float, sd: float, n: int, size: int | None
) -> None:
    low, high = share_limits(share, sd, n, Measure(least=0, most=1, size=size), 0.95)
    assert 0 <= low <= share + 1e-6
    assert share - 1e-6 <= high <= 1
    assert low < high


@pytest.mark.parametrize(("mean", "end"), [(-0.1, 0.0), (0.0, 0.0), (1.0, 1.0), (1.2, 1.0)])
def test_a_mean_at_or_beyond_an_end_of_the_range_counts_as_that_end_without_spread(
    mean: float, end: float
) -> None:
    assert share_limits(mean, 0.2, 5, CLASSES, 0.95) == share_limits(end, 0.0, 5, CLASSES, 0.95)
    percent = share_limits(200 * end - 100, 0.0, 5, Measure(least=-100, most=100, size=6), 0.95)
    assert percent == pytest.approx(
        tuple(200 * limit - 100 for limit in share_limits(end, 0.0, 5, CLASSES, 0.95))
    )


@pytest.mark.parametrize(
    ("share", "clustering"),
    [(0.5, 0.0), (0.5, 0.3), (0.5, 1.0), (0.9, 0.0), (0.9, 0.3), (0.97, 0.0), (0.97, 0.3)],
)
def test_limits_of_clustered_shares_keep_their_level(share: float, clustering: float) -> None:
    """1,000 studies of 10 seeds with 6 classes each; classes of a seed may be correlated."""
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(1000):
        together = rng.random((10, 1)) < share
        alone = rng.random((10, 6)) < share
        is_together = rng.random((10, 1)) < clustering
        values = np.where(is_together, together, alone).mean(axis=1)
        summary = summarise(list(values), CLASSES)
        missed += not summary.ci_low <= share <= summary.ci_high
    # The t interval, which is kept where it stays in the bounds, leans on near-normal seeds.
    assert missed / 1000 <= {0.5: 0.05, 0.9: 0.06, 0.97: 0.08}[share] + 0.014


def test_two_equal_differences_have_no_p_and_three_use_the_counting_spread() -> None:
    images = Measure(least=0.0, most=1.0, size=360)
    theirs, ours = ({seed: (n + 5 * seed) / 360 for seed in range(3)} for n in (30, 40))
    two = compare(*({seed: arm[seed] for seed in (0, 1)} for arm in (ours, theirs)), images, images)
    assert two.p is two.ci_low is two.effect is None
    assert two.is_constant
    found = compare(ours, theirs, images, images)
    assert found.sd == pytest.approx(0, abs=1e-12)
    assert found.effect is not None
    assert found.spread == pytest.approx(math.sqrt(10) / 360)
    assert found.ci_high - found.ci_low == pytest.approx(
        2 * 4.303 * 10**0.5 / 360 / 3**0.5, rel=1e-3
    )


def test_a_difference_of_one_image_in_256_at_every_seed_is_not_significant() -> None:
    images = Measure(least=0.0, most=1.0, size=256)
    values, shifted = ({seed: (n + seed) / 256 for seed in range(5)} for n in (25, 26))
    assert compare(shifted, values, images, images).p > 0.05


@pytest.mark.parametrize(
    ("factors", "step"),
    [
        ((1, -1), 1.0),
        ((1, -1, -1, 1), 1.0),
        ((2, -1, -1), 1.0),
        ((1, -10), 1.0),
        ((1, -0.5), 0.5),
        ((1, -0.75), 0.25),
        ((1 / 3, 1 / 3, 1 / 3, -1), 1 / 3),
        ((5, -3), 1.0),
        ([1] * 12, 1.0),
        ([1] * 13, 0.0),
    ],
)
def test_the_smallest_step_is_the_least_change_by_one_item(
    factors: Sequence[float], step: float
) -> None:
    assert smallest_step(factors) == pytest.approx(step)


@pytest.mark.parametrize(("mean", "limit"), [(0.5, 0.025), (0.1, 0.01), (0.0, 0.01), (1.2, 0.01)])
def test_the_limit_of_a_fraction_of_ten_items_is_its_sampling_variance(
    mean: float, limit: float
) -> None:
    """The limit is at least that of one counted item of ten."""
    assert least_variance(mean, 10) == pytest.approx(limit)


@pytest.mark.parametrize("factor", [1.0, 0.5, 0.75, 3.0])
def test_the_limit_of_a_weighted_difference_is_below_the_variance_of_any_networks(
    factor: float,
) -> None:
    """4,000 runs of two networks on new images; they disagree as little as their shares allow."""
    rng, size, step = np.random.default_rng(5), 500, smallest_step((1.0, -factor))
    for shares in ((0.1, 0.1), (0.3, 0.1), (0.1, 0.3)):
        drawn = rng.random((4000, size))
        ours, theirs = (drawn < shares[0]).mean(axis=1), (drawn < shares[1]).mean(axis=1)
        found = ours - factor * theirs
        limit = least_variance(float(found.mean()), size, step=step)
        seen = float(np.var(found)) + float(found.mean()) ** 2 / size
        assert limit <= 1.1 * max(seen, (step / size) ** 2)


@pytest.mark.parametrize("factor", [0.5, 1.5, 2.0])
def test_the_interval_of_a_difference_with_a_factor_covers_the_truth_at_its_level(
    factor: float,
) -> None:
    """2,000 studies whose runs are wrong on each image with the same probability."""
    rng = np.random.default_rng(5)
    images = Measure(least=0.0, most=1.0, size=360)
    hits = 0
    for _ in range(2000):
        hard = rng.random(360) ** 4
        errors = (rng.random((2, 5, 360)) < hard).mean(axis=2)
        ours, theirs = (dict(enumerate(map(float, row))) for row in errors)
        found = contrast([(1.0, ours, images), (-factor, theirs, images)])
        hits += found.ci_low <= (1 - factor) * hard.mean() <= found.ci_high
    assert hits / 2000 >= 0.95 - 0.01


def test_the_interval_of_an_exact_difference_stays_in_bounds_and_agrees_with_its_p() -> None:
    ours, theirs = dict.fromkeys(range(5), 1.0), dict.fromkeys(range(5), 0.0)
    found = compare(ours, theirs, CLASSES, CLASSES)
    assert found.is_exact
    assert not found.is_constant
    assert found.ci_high == 1.0
    assert 0 < found.ci_low < 1
    for level, is_told in ((2 * found.p, True), (found.p / 2, False)):
        interval = found.interval(1 - level)
        assert (interval[0] > 0) == is_told
    spread = dict(enumerate([1.0, 1.0, 5 / 6, 1.0, 1.0]))
    half = contrast([(1.0, spread, CLASSES), (-0.5, theirs, CLASSES)])
    of_half = share_limits(29 / 30, np.std(list(spread.values()), ddof=1), 5, CLASSES, 0.95)
    none = share_limits(0.0, 0.0, 5, CLASSES, 0.95)
    assert half.is_exact
    ends = of_half[0] - none[1] / 2, of_half[1] - none[0] / 2
    assert half.interval(0.9) == pytest.approx(ends)
    share = Measure(least=0.0, most=1.0)
    fixed = compare(dict.fromkeys(range(5), 0.5), dict.fromkeys(range(5), 0.25), share, share)
    (a, b), (c, d) = (share_limits(mean, 0.0, 5, share, 0.95) for mean in (0.5, 0.25))
    assert fixed.interval(0.9) == pytest.approx((a - d, b - c))


def test_the_least_spread_follows_from_the_smallest_number_of_items() -> None:
    few, many = (Measure(least=0.0, most=1.0, size=size) for size in (100, 400))
    theirs = {0: 0.1, 1: 0.2, 2: 0.15}
    ours = {seed: value + 0.25 for seed, value in theirs.items()}
    for pair in ((few, many), (many, few)):
        assert compare(ours, theirs, *pair).spread == pytest.approx((0.25 / 100) ** 0.5)
    assert compare(ours, theirs, few, Measure(least=0.0, most=1.0)).spread is None
    alone = contrast([(2.0, dict.fromkeys(range(3), 0.25), few)])
    assert alone.spread == pytest.approx(2 * sampling_noise(0.25, 100))
