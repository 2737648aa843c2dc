"""Tests of comparisons: differences, effects and ratios of variances."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.stats
from scipy import stats

from reports.numbers.comparison import (
    Comparison,
    IncompleteStudyError,
    compare,
    effect_interval,
    hedges_factor,
    over_shared,
    ratio_of_variances,
)
from reports.numbers.judging import judge
from reports.numbers.power import detectable_difference, upper_sd
from reports.numbers.summary import ANY, Measure
from reports.numbers.verdict import claim_test
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.study import Study
from tests.mixsweep.cli.test_claim_power import claiming
from tests.reports.synthetic import make_study


def paired(ours: Sequence[float], theirs: Sequence[float], measure: Measure = ANY) -> Comparison:
    return compare(dict(enumerate(ours)), dict(enumerate(theirs)), measure, measure)


def test_a_comparison_agrees_with_the_paired_t_test_of_scipy() -> None:
    ours, theirs = [0.21, 0.19, 0.25, 0.20, 0.22], [0.23, 0.24, 0.25, 0.23, 0.29]
    comparison = paired(ours, theirs)
    reference = scipy.stats.ttest_rel(ours, theirs)
    for confidence in (0.9, 0.95, 0.99):
        interval = reference.confidence_interval(confidence)
        assert comparison.interval(confidence) == pytest.approx((interval.low, interval.high))
    differences = np.subtract(ours, theirs)
    assert comparison.difference == pytest.approx(differences.mean())
    assert comparison.p == pytest.approx(reference.pvalue)
    assert (comparison.ci_low, comparison.ci_high) == comparison.interval(0.95)
    d = differences.mean() / differences.std(ddof=1)
    assert comparison.effect == pytest.approx(d * hedges_factor(5))
    assert comparison.effect_low < d < comparison.effect_high
    assert comparison.level(lambda low, high: not low <= 0 <= high) == pytest.approx(comparison.p)
    assert comparison.level(lambda *_: True) == pytest.approx(1e-12)
    assert comparison.level(lambda *_: False) == 1
    assert comparison.effect_interval(0.95) == (comparison.effect_low, comparison.effect_high)
    for end, level in zip(comparison.effect_interval(0.9), (0.95, 0.05), strict=True):
        centre = end * math.sqrt(5)
        assert scipy.stats.nct.cdf(reference.statistic, 4, centre) == pytest.approx(level)


def test_unmatched_seeds_are_refused_unless_only_shared_ones_are_compared() -> None:
    ours, theirs = {1: 0.1, 7: 0.2, 2: 0.5}, {1: 0.1, 2: 0.2, 3: 0.3}
    with pytest.raises(IncompleteStudyError, match=r"arm=\[2, 3\].*baseline=\[7\]"):
        compare({1: 0.1, 7: 0.2}, theirs)
    shared = over_shared([(1.0, ours, ANY), (-1.0, theirs, ANY)])
    assert shared == compare({1: 0.1, 2: 0.5}, {1: 0.1, 2: 0.2})
    assert over_shared([(1.0, {7: 0.2}, ANY), (-1.0, theirs, ANY)]) is None


def test_one_seed_gives_no_p_value_and_two_give_one_without_an_effect_size() -> None:
    alone = paired([0.2], [0.3])
    assert alone.difference == pytest.approx(-0.1)
    assert alone.p is alone.sd is alone.effect is alone.ci_low is None
    assert not alone.is_constant
    both = paired([0.2, 0.3], [0.25, 0.31])
    assert both.p is not None
    assert both.effect is both.effect_interval(0.95) is None
    assert paired([0.2, 0.3, 0.2], [0.25, 0.31, 0.3]).effect is not None
    large = paired([0.2, 0.3, 0.2 + 1e-6], [0.1, 0.2, 0.1])
    assert large.p < 1e-9
    assert large.effect is large.effect_low is None, "t is above 10,000"


def test_a_t_interval_inside_the_range_of_differences_is_kept() -> None:
    share, high, low = Measure(least=0.0, most=1.0), [0.95, 0.85, 0.95, 0.9], [0.05, 0.1, 0.1, 0.05]
    for ours, theirs in ((high, low), (low, high)):
        found = paired(ours, theirs, share)
        assert not found.is_exact
        assert found.p == pytest.approx(scipy.stats.ttest_rel(ours, theirs).pvalue)


@pytest.mark.parametrize(
    ("ours", "difference"),
    [
        ([0.3, 0.2, 0.1], 0.0),
        ([0.1 + 0.2, 0.2, 0.1], 0.0),
        ([0.4, 0.3, 0.2], 0.1),
        ([0.2, 0.1, 0.0], -0.1),
    ],
)
def test_differences_that_do_not_vary_have_no_interval_no_p_and_no_effect(
    ours: list[float], difference: float
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparison = paired(ours, [0.3, 0.2, 0.1])
    assert comparison.difference == pytest.approx(difference, rel=1e-9, abs=0.0)
    assert comparison.is_constant
    assert comparison.p is comparison.effect is comparison.ci_low is None
    assert comparison.interval(0.99) is None


@pytest.mark.parametrize("shift", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("n", [6, 7, 10])
def test_the_sign_flip_p_agrees_with_the_exact_permutation_test_of_scipy(
    n: int, shift: float
) -> None:
    differences = np.random.default_rng(n).normal(shift, 1.0, size=n)
    reference = scipy.stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=np.inf
    )
    assert reference.null_distribution.size == 2**n, "counted, not sampled"
    ours = paired(list(differences), [0.0] * n).sign_flip_p
    assert ours == pytest.approx(reference.pvalue, rel=1e-12)


@pytest.mark.parametrize("tenths", [[1] * 6, [1, -1] * 3, [3, 1, 2, 0, 1, 2]])
def test_the_sign_flip_p_counts_sums_that_differ_by_rounding_as_equal(tenths: list[int]) -> None:
    sums = [np.dot(signs, tenths) for signs in product([1, -1], repeat=6)]
    expected = np.mean([abs(total) >= abs(sum(tenths)) for total in sums])
    assert paired([tenth / 10 for tenth in tenths], [0.0] * 6).sign_flip_p == expected


def test_the_sign_flip_p_exists_from_six_to_twenty_seeds() -> None:
    assert paired([0.1, 0.2, 0.3, 0.5, 0.4], [0.0] * 5).sign_flip_p is None
    assert paired([0.1, 0.2, 0.3, 0.5, 0.4, 0.6], [0.0] * 6).sign_flip_p == 2 / 2**6
    assert paired([0.1] * 20, [0.0] * 20).sign_flip_p == 2 / 2**20
    assert paired([0.1] * 21, [0.0] * 21).sign_flip_p is None


def test_the_effect_interval_agrees_with_a_published_example() -> None:
    low, high = effect_interval(1.68 * math.sqrt(5), 5)
    assert (low, high) == pytest.approx((0.23, 3.07), abs=0.005)


@pytest.mark.parametrize(("n", "factor"), [(5, 0.80), (10, 0.91)])
def test_hedges_factor_agrees_with_published_tables(n: int, factor: float) -> None:
    assert hedges_factor(n) == pytest.approx(factor, abs=0.005)


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


def test_the_upper_limit_of_the_sd_covers_the_true_sd_with_95_percent() -> None:
    draws = np.random.default_rng(6).normal(size=(40_000, 5)).std(axis=1, ddof=1)
    above = np.mean([upper_sd(1.0, 5) * sd >= 1 for sd in draws])
    assert above == pytest.approx(0.95, abs=0.005)


GENERATOR = np.random.default_rng(7)


def by_seed(values: np.ndarray | list[float]) -> dict[int, float]:
    return dict(enumerate(map(float, values)))


def test_ratio_interval_and_p_equal_a_jackknife_written_with_scipy() -> None:
    left, right = GENERATOR.normal(size=(2, 12)) * [[3.0], [1.0]]

    def logs(values: np.ndarray) -> list[float]:
        return [math.log(stats.tvar(np.delete(values, place))) for place in range(12)]

    pairs = zip(logs(left), logs(right), strict=True)
    whole = math.log(stats.tvar(left) / stats.tvar(right))
    pseudo = [12 * whole - 11 * (ours - theirs) for ours, theirs in pairs]
    found = ratio_of_variances(by_seed(left), by_seed(right))
    assert found.value == pytest.approx(math.exp(np.mean(pseudo)))
    expected = stats.ttest_1samp(pseudo, 0.0)
    low, high = expected.confidence_interval(0.95)
    assert found.interval(0.95) == pytest.approx((math.exp(low), math.exp(high)))
    assert found.level(lambda low, high: not low <= 1 <= high) == pytest.approx(expected.pvalue)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1e-3), (5.0, 1.0), (-2.0, 40.0)])
def test_the_ratio_does_not_depend_on_shift_and_scale(shift: float, scale: float) -> None:
    left, right = GENERATOR.exponential(size=(2, 8))
    plain = ratio_of_variances(by_seed(left), by_seed(right))
    moved = ratio_of_variances(by_seed(shift + scale * left), by_seed(scale * right))
    swapped = ratio_of_variances(by_seed(right), by_seed(left))
    assert moved.interval(0.9) == pytest.approx(plain.interval(0.9))
    assert swapped.value == pytest.approx(1 / plain.value)


@pytest.mark.parametrize("left", [[1.0, 2.0], [1.0] * 4, [0.1 + 0.2, 0.3, 0.3, 1.0]])
def test_values_without_a_jackknife_give_no_ratio(left: list[float]) -> None:
    assert ratio_of_variances(by_seed(left), by_seed(np.arange(len(left)))) is None


def test_the_ratio_at_three_seeds_has_a_finite_interval_at_any_level() -> None:
    found = ratio_of_variances(by_seed([0.0, 1.0, 5.0]), by_seed([3.0, 1.0, 2.0]))
    assert 0 <= found.interval(1 - 1e-12)[0] < found.value < found.interval(1 - 1e-12)[1] < math.inf


def study_of(*comparisons: StatedComparison, spread: float = 1.0) -> tuple[Study, dict]:
    study = claiming(make_study(seeds=tuple(range(30))), *comparisons)
    draws = np.random.default_rng(1).normal(size=(2, 30))
    values = {"uniform": 0.2 + 0.01 * spread * draws[0], "erm": 0.3 + 0.01 * draws[1]}
    return study, {arm: by_seed(numbers) for arm, numbers in values.items()}


def of_variance(**keys: object) -> StatedComparison:
    return StatedComparison(metric="test/error", of="variance", **keys)  # type: ignore[arg-type]


LESS = of_variance(less=("uniform", "erm"))


@pytest.mark.parametrize(
    ("that", "spread", "verdict"),
    [
        (LESS, 0.2, "holds"),
        (LESS, 5.0, "fails"),
        (LESS, 1.0, "undecided"),
        (of_variance(less=("uniform", "erm"), factor=0.001), 0.2, "fails"),
        (of_variance(within=("uniform", "erm"), margin=30.0), 1.0, "holds"),
        (of_variance(within=("uniform", "erm"), margin=2.0), 0.1, "fails"),
        (of_variance(at_least=("uniform", "erm"), margin=1.5), 9.0, "holds"),
    ],
)
def test_claims_about_variances_are_judged_by_the_interval_of_the_ratio(
    that: StatedComparison, spread: float, verdict: str
) -> None:
    study, values = study_of(that, spread=spread)
    (found,) = judge(study, lambda _: values)
    assert found.verdict == verdict
    assert found.low < found.value < found.high
    assert found.low < spread**2 < found.high


def test_a_claim_about_variances_and_its_opposite_are_one_test() -> None:
    study, _ = study_of(LESS)
    third = of_variance(less=("uniform", "erm"), factor=1 / 3)
    claims = [
        Claim(says="", source="", that=that)
        for that in (
            LESS, of_variance(greater=("erm", "uniform")), of_variance(less=("erm", "uniform")),
            third, of_variance(less=("erm", "uniform"), factor=3.0),
        )
    ]  # fmt: skip
    less, greater, mirrored, *scaled = (claim_test(study, claim) for claim in claims)
    assert less == greater == mirrored != scaled[0] == scaled[1]


@pytest.mark.parametrize("num_equal", [29, 30])
def test_a_claim_about_variances_that_no_run_can_decide_is_undecided(num_equal: int) -> None:
    study, values = study_of(LESS)
    values["erm"] |= dict.fromkeys(range(num_equal), 0.0)
    (found,) = judge(study, lambda _: values)
    assert (found.verdict, found.value, found.n) == ("undecided", None, 30)
    assert found.spelled.startswith("undecided (no ratio, because the values of an arm are equal")
    (early,) = judge(study, lambda _: {**values, "erm": dict.fromkeys(range(29), 0.0)})
    assert (early.verdict, early.spelled) == ("unfinished", "unfinished")
    two = {arm: {seed: by_seed[seed] for seed in (0, 1)} for arm, by_seed in values.items()}
    (few,) = judge(replace(study, seeds=(0, 1)), lambda _: two)
    assert few.spelled == "undecided (no ratio, because it needs 3 seeds or more)"
