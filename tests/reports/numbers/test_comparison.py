import warnings
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
import scipy.stats

from reports.numbers.comparison import Comparison, IncompleteStudyError, compare
from reports.numbers.effects import hedges_factor


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Comparison:
    return compare(dict(enumerate(ours)), dict(enumerate(theirs)))


def test_a_comparison_agrees_with_the_paired_t_test_of_scipy() -> None:
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


def test_unmatched_seeds_are_refused_and_all_listed() -> None:
    with pytest.raises(IncompleteStudyError, match=r"arm=\[2, 3\].*baseline=\[7\]"):
        compare({1: 0.1, 7: 0.2}, {1: 0.1, 2: 0.2, 3: 0.3})


def test_one_shared_seed_gives_a_difference_without_p_interval_or_effect() -> None:
    comparison = paired([0.2], [0.3])
    assert comparison.difference == pytest.approx(-0.1)
    assert comparison.p is comparison.sd is comparison.effect is comparison.ci_low is None


def test_two_seeds_give_a_p_value_but_no_effect_size() -> None:
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


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_an_interval_of_any_level_agrees_with_scipy(confidence: float) -> None:
    ours, theirs = [0.21, 0.19, 0.25, 0.20, 0.22], [0.23, 0.24, 0.25, 0.23, 0.29]
    expected = scipy.stats.ttest_rel(ours, theirs).confidence_interval(confidence)
    found = paired(ours, theirs).interval(confidence)
    assert found == pytest.approx((expected.low, expected.high))
