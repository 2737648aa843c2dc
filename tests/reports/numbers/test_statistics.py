import math
import statistics
import warnings
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats

from reports.numbers.statistics import (
    Comparison,
    IncompleteStudyError,
    compare,
    detectable_difference,
    effect_interval,
    equivalence,
    expected_lowest,
    hedges_factor,
    holm,
    prediction_interval,
    summarise,
    summarise_runs,
    upper_sd,
)
from sweeps.state.results import RunResult


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Comparison:
    return compare(dict(enumerate(ours)), dict(enumerate(theirs)))


def test_a_summary_is_the_t_interval_of_scipy() -> None:
    values = [0.21, 0.19, 0.25, 0.20, 0.22]
    summary = summarise(values)
    interval = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert summary.n == 5
    assert summary.mean == pytest.approx(np.mean(values))
    assert summary.sd == pytest.approx(np.std(values, ddof=1))
    assert (summary.ci_low, summary.ci_high) == pytest.approx((interval.low, interval.high))
    expected = 2.776 * np.std(values, ddof=1) / math.sqrt(5)
    assert summary.half_width == pytest.approx(expected, rel=1e-3)


def test_a_summary_does_not_depend_on_the_order_of_the_seeds() -> None:
    values = list(np.random.default_rng(0).normal(size=7))
    assert summarise(values) == summarise(values[::-1])


@pytest.mark.parametrize("n", [2, 3, 5, 25])
def test_mean_and_sd_are_rounded_correctly_whatever_the_values(n: int) -> None:
    rng = np.random.default_rng(n)
    corners = [0.1, -0.0, 5.0, 2.0**-1074, 1e-310, 1e300, -1e300]
    for _ in range(300):
        values = [float(v) for v in rng.normal(size=n) * 10.0 ** rng.integers(-9, 4, size=n)]
        if rng.random() < 0.5:
            values[0] = float(rng.choice(corners))
        summary = summarise(values)
        assert (summary.mean, summary.sd) == (statistics.mean(values), statistics.stdev(values))


def test_an_sd_half_way_between_two_floats_is_the_even_one() -> None:
    values = [-(2.0**53) - 2, -1.0, 2.0**53]  # sd 2^53 + 1
    assert summarise(values).sd == statistics.stdev(values) == 2.0**53


def test_one_seed_has_a_mean_and_no_spread() -> None:
    summary = summarise([0.3])
    assert (summary.n, summary.mean) == (1, 0.3)
    assert summary.sd is summary.ci_low is summary.ci_high is summary.half_width is None


def test_equal_values_that_nothing_bounds_show_no_spread_to_make_an_interval_of() -> None:
    summary = summarise([0.1, 0.1, 0.1])
    assert (summary.sd, summary.ci_low, summary.ci_high) == (0, None, None)


@pytest.mark.parametrize("values", [[], [0.1, math.nan], [math.inf]])
def test_a_summary_refuses_no_values_and_non_finite_ones(values: list[float]) -> None:
    with pytest.raises(ValueError, match="values must be finite, at least one"):
        summarise(values)


@pytest.mark.parametrize("n", [3, 5])
def test_the_interval_covers_the_truth_as_often_as_it_says(n: int) -> None:
    draws = np.random.default_rng(1).normal(0.2, 0.01, size=(4000, n))
    summaries = [summarise(list(map(float, row))) for row in draws]
    covered = np.mean([abs(s.mean - 0.2) <= (s.half_width or 0.0) for s in summaries])
    assert 0.93 <= covered <= 0.97


@pytest.mark.parametrize(("n", "seeds"), [(3, 1), (5, 1), (5, 4)])
def test_the_prediction_interval_holds_as_many_further_means_as_it_says(n: int, seeds: int) -> None:
    rng = np.random.default_rng(9)
    ours, theirs = rng.normal(3, 2, (4_000, n)), rng.normal(3, 2, (4_000, seeds)).mean(axis=1)
    ends = [prediction_interval(summarise(list(values)), seeds) for values in ours]
    inside = [
        pair is not None and pair[0] <= x <= pair[1] for pair, x in zip(ends, theirs, strict=True)
    ]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.012)


def test_the_prediction_interval_of_many_seeds_is_that_of_the_mean_and_needs_two() -> None:
    summary = summarise([0.21, 0.19, 0.25, 0.20, 0.22])
    ends = prediction_interval(summary, 10**12)
    assert ends == pytest.approx((summary.ci_low, summary.ci_high))
    assert prediction_interval(summarise([0.2]), 1) is None
    with pytest.raises(ValueError, match="seeds >= 1"):
        prediction_interval(summary, 0)


def test_a_comparison_is_the_paired_t_test_of_scipy() -> None:
    ours, theirs = [0.21, 0.19, 0.25, 0.20, 0.22], [0.23, 0.24, 0.25, 0.23, 0.29]
    comparison = paired(ours, theirs)
    reference = scipy.stats.ttest_rel(ours, theirs)
    interval = reference.confidence_interval(0.95)
    differences = np.subtract(ours, theirs)
    assert comparison.difference == pytest.approx(differences.mean())
    assert comparison.p == pytest.approx(reference.pvalue)
    assert (comparison.ci_low, comparison.ci_high) == pytest.approx((interval.low, interval.high))
    d = differences.mean() / differences.std(ddof=1)
    assert comparison.effect == pytest.approx(d * hedges_factor(5))
    assert comparison.effect_low < d < comparison.effect_high


def test_pairs_are_made_by_seed_not_by_place() -> None:
    ours, theirs = {3: 0.2, 1: 0.1, 2: 0.15}, {1: 0.11, 2: 0.17, 3: 0.23}
    assert compare(ours, theirs) == compare(dict(sorted(ours.items())), theirs)


def test_unmatched_seeds_are_refused_and_all_named() -> None:
    with pytest.raises(IncompleteStudyError, match=r"arm=\[2, 3\].*baseline=\[7\]"):
        compare({1: 0.1, 7: 0.2}, {1: 0.1, 2: 0.2, 3: 0.3})


def test_one_shared_seed_gives_a_difference_and_nothing_else() -> None:
    comparison = paired([0.2], [0.3])
    assert comparison.difference == pytest.approx(-0.1)
    assert comparison.p is comparison.sd is comparison.effect is comparison.ci_low is None


def test_two_seeds_have_a_p_but_no_effect_size() -> None:
    comparison = paired([0.2, 0.3], [0.25, 0.31])
    assert comparison.p is not None
    assert comparison.effect is None


@pytest.mark.parametrize("ours", [[0.3, 0.2, 0.1], [0.4, 0.3, 0.2], [0.2, 0.1, 0.0]])
def test_differences_that_do_not_vary_have_no_interval_no_p_and_no_effect(
    ours: list[float],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparison = paired(ours, [0.3, 0.2, 0.1])
    assert comparison.is_constant
    assert comparison.p is comparison.effect is comparison.ci_low is None
    assert comparison.interval(0.99) is None


def test_the_effect_interval_is_the_one_published() -> None:
    low, high = effect_interval(1.68 * math.sqrt(5), 5)
    assert (low, high) == pytest.approx((0.23, 3.07), abs=0.005)


def test_the_effect_interval_puts_t_at_the_tail_quantiles() -> None:
    low, high = effect_interval(2.5, 8)
    assert scipy.stats.nct.sf(2.5, 7, low * math.sqrt(8)) == pytest.approx(0.025, abs=1e-5)
    assert scipy.stats.nct.cdf(2.5, 7, high * math.sqrt(8)) == pytest.approx(0.025, abs=1e-5)


@pytest.mark.parametrize(("n", "factor"), [(5, 0.80), (10, 0.91)])
def test_hedges_factor_has_its_tabled_values(n: int, factor: float) -> None:
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
def test_detectable_differences_are_the_published_ones(
    n: int, comparisons: int, printed: float
) -> None:
    assert detectable_difference(n, comparisons) == pytest.approx(printed, abs=0.005)


def test_a_detectable_difference_is_found_four_times_in_five() -> None:
    truth = detectable_difference(5)
    draws = np.random.default_rng(3).normal(truth, 1.0, size=(20_000, 5))
    found = scipy.stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.01)


def test_holm_multiplies_the_smallest_most_and_keeps_the_order() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx((0.06, 0.03, 0.06))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([0.02]) == (0.02,)
    assert holm([]) == ()


def test_holm_rejects_exactly_what_the_step_down_rule_rejects() -> None:
    rng = np.random.default_rng(4)
    for ps in rng.uniform(0, 0.1, size=(300, 4)):
        rejected = set()
        for step, place in enumerate(np.argsort(ps)):
            if ps[place] > 0.05 / (4 - step):
                break
            rejected.add(int(place))
        assert {place for place, p in enumerate(holm(list(ps))) if p <= 0.05} == rejected


def test_holm_keeps_the_family_wise_error_at_five_percent() -> None:
    rng = np.random.default_rng(5)
    draws = rng.normal(size=(20_000, 4, 5))
    ps = scipy.stats.ttest_rel(draws[:, 1:], draws[:, :1], axis=2).pvalue
    some_rejection = np.mean([min(holm(list(family))) <= 0.05 for family in ps])
    assert 0.02 < some_rejection <= 0.05


@pytest.mark.parametrize("shift", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("n", [6, 7, 10])
def test_the_sign_flip_p_is_the_exact_one_of_scipy(n: int, shift: float) -> None:
    differences = np.random.default_rng(n).normal(shift, 1.0, size=n)
    reference = scipy.stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=np.inf
    )
    assert reference.null_distribution.size == 2**n, "counted, not sampled"
    ours = paired(list(differences), [0.0] * n).sign_flip_p
    assert ours == pytest.approx(reference.pvalue, rel=1e-12)


@pytest.mark.parametrize(
    "differences", [[0.1] * 6, [0.1, -0.1] * 3, [0.3, 0.1, 0.2, 0.0, 0.1, 0.2]]
)
def test_the_sign_flip_p_counts_sums_that_differ_by_rounding_as_equal(
    differences: list[float],
) -> None:
    tenths = [round(10 * difference) for difference in differences]
    sums = [
        sum(sign * t for sign, t in zip(s, tenths, strict=True)) for s in product([1, -1], repeat=6)
    ]
    expected = sum(abs(total) >= abs(sum(tenths)) for total in sums) / 2**6
    assert paired(differences, [0.0] * 6).sign_flip_p == expected


def test_the_sign_flip_p_starts_at_six_seeds() -> None:
    assert paired([0.1, 0.2, 0.3, 0.5, 0.4], [0.0] * 5).sign_flip_p is None
    assert paired([0.1, 0.2, 0.3, 0.5, 0.4, 0.6], [0.0] * 6).sign_flip_p == 2 / 2**6


def test_the_sign_flip_p_ends_at_twenty_seeds() -> None:
    growing = [float(seed) for seed in range(1, 22)]
    assert paired(growing[:20], [0.0] * 20).sign_flip_p == 2 / 2**20
    assert paired(growing, [0.0] * 21).sign_flip_p is None


def test_the_metrics_of_an_arm_are_named_as_in_the_table(results: tuple[RunResult, ...]) -> None:
    uniform = [result.records[-1].metrics for result in results if result.run.arm == "uniform"]
    numbers = summarise_runs(uniform)
    errors = [metrics["test/error"] for metrics in uniform]
    assert numbers["test/error_sd"] == pytest.approx(np.std(errors, ddof=1))
    assert set(summarise_runs(uniform[:1])) == {f"{metric}_mean" for metric in uniform[0]}


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_an_interval_of_any_level_is_the_one_of_scipy(confidence: float) -> None:
    ours, theirs = [0.21, 0.19, 0.25, 0.20, 0.22], [0.23, 0.24, 0.25, 0.23, 0.29]
    expected = scipy.stats.ttest_rel(ours, theirs).confidence_interval(confidence)
    found = paired(ours, theirs).interval(confidence)
    assert found == pytest.approx((expected.low, expected.high))


def test_the_upper_limit_of_the_sd_lies_above_the_truth_19_times_in_20() -> None:
    draws = np.random.default_rng(6).normal(size=(40_000, 5)).std(axis=1, ddof=1)
    above = np.mean([upper_sd(1.0, 5) * sd >= 1 for sd in draws])
    assert above == pytest.approx(0.95, abs=0.005)


def test_the_power_averages_less_where_the_sd_is_the_one_observed() -> None:
    rng = np.random.default_rng(7)
    sds = rng.normal(size=(4_000, 5)).std(axis=1, ddof=1)
    critical = scipy.stats.t.ppf(0.975, 4)
    truths = detectable_difference(5) * sds * math.sqrt(5)
    power = scipy.stats.nct.sf(critical, 4, truths)
    assert power.mean() == pytest.approx(0.685, abs=0.01)


@pytest.mark.parametrize("margin", [0.005, 0.02, 0.5])
def test_the_probabilities_of_equivalence_are_the_closed_form(margin: float) -> None:
    ours, theirs = [0.21, 0.19, 0.25, 0.20, 0.22], [0.23, 0.24, 0.25, 0.23, 0.29]
    differences = np.subtract(ours, theirs)
    scale = differences.std(ddof=1) / math.sqrt(5)
    found = equivalence(paired(ours, theirs), margin)
    assert found is not None
    below, above = (
        scipy.stats.t.cdf((-margin - differences.mean()) / scale, 4),
        scipy.stats.t.sf((margin - differences.mean()) / scale, 4),
    )
    assert (found.below, found.above) == pytest.approx((below, above), abs=1e-12)
    assert found.below + found.within + found.above == pytest.approx(1)


def test_the_probabilities_of_equivalence_are_those_of_the_posterior_simulated() -> None:
    differences = np.array([-0.01, 0.02, -0.03, -0.02, 0.0])
    found = equivalence(paired(list(differences), [0.0] * 5), 0.01)
    assert found is not None
    rng = np.random.default_rng(8)
    sds = differences.std(ddof=1) * np.sqrt(4 / rng.chisquare(4, size=400_000))
    means = rng.normal(differences.mean(), sds / math.sqrt(5))
    assert found.below == pytest.approx(np.mean(means < -0.01), abs=0.003)
    assert found.above == pytest.approx(np.mean(means > 0.01), abs=0.003)


def test_equivalence_needs_two_seeds_and_a_spread() -> None:
    assert equivalence(paired([0.1], [0.2]), 0.01) is None
    assert equivalence(paired([0.4, 0.3, 0.2], [0.3, 0.2, 0.1]), 0.01) is None


def test_the_expected_lowest_is_the_mean_over_all_choices() -> None:
    values = [0.4, 0.1, 0.1, 0.7, 0.3]
    for n, expected in enumerate(expected_lowest(values), 1):
        lowest = [min(chosen) for chosen in combinations(values, n)]
        assert expected == pytest.approx(np.mean(lowest))
