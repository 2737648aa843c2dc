import math

import numpy as np
import pytest
from scipy import stats

from reports.numbers.judging import judge
from reports.numbers.variances import ratio_of_variances
from sweeps.study.claims import StatedComparison
from sweeps.study.study import Study
from tests.mixsweep.cli.test_claim_power import claiming
from tests.reports.synthetic import make_study

GENERATOR = np.random.default_rng(7)


def by_seed(values: np.ndarray) -> dict[int, float]:
    return dict(enumerate(values.tolist()))


def test_ratio_interval_and_p_equal_a_jackknife_written_with_scipy() -> None:
    left, right = GENERATOR.normal(size=(2, 12)) * [[3.0], [1.0]]

    def logs(values: np.ndarray) -> list[float]:
        return [math.log(stats.tvar(np.delete(values, place))) for place in range(12)]

    pairs = zip(logs(left), logs(right), strict=True)
    whole = math.log(stats.tvar(left) / stats.tvar(right))
    pseudo = [12 * whole - 11 * (ours - theirs) for ours, theirs in pairs]
    found = ratio_of_variances(by_seed(left), by_seed(right))
    assert found is not None
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
    assert plain is not None
    assert moved is not None
    assert swapped is not None
    assert moved.interval(0.9) == pytest.approx(plain.interval(0.9))
    assert swapped.value == pytest.approx(1 / plain.value)


@pytest.mark.parametrize("left", [[1.0, 2.0], [1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0]])
def test_values_without_a_jackknife_give_no_ratio(left: list[float]) -> None:
    right = {seed: float(seed) for seed in range(len(left))}
    assert ratio_of_variances(by_seed(np.array(left)), right) is None


@pytest.mark.parametrize("n", [5, 25])
@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_intervals_of_light_tailed_values_cover_the_true_ratio(kind: str, n: int) -> None:
    draws = GENERATOR.normal(size=(200, 2, n))
    common = GENERATOR.normal(size=(200, 1, n))
    values = draws + common
    if kind == "uniform":
        values = stats.norm.cdf(values, scale=math.sqrt(2))
    covered = 0
    for left, right in values:
        found = ratio_of_variances(by_seed(left), by_seed(right))
        assert found is not None
        low, high = found.interval(0.95) or (0.0, 0.0)
        covered += low <= 1 <= high
    assert covered >= stats.binom.ppf(1e-4, 200, 0.95)


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
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    assert found.low < spread**2 < found.high


def test_the_variances_are_another_claim_than_the_means() -> None:
    means = StatedComparison(metric="test/error", less=("uniform", "erm"))
    study, values = study_of(LESS, means, spread=0.2)
    variance, mean = judge(study, lambda _: values)
    assert (variance.verdict, mean.verdict) == ("holds", "holds")
    assert variance.p is not None
    assert mean.p is not None
    assert variance.value != mean.value


@pytest.mark.parametrize(
    "keys",
    [
        {"less": (("uniform", "erm"), ("erm", "uniform"))},
        {"less": ("uniform", 0.5)},
        {"within": ("uniform", "erm"), "margin": 0.5},
    ],
)
def test_comparisons_that_are_no_ratio_of_two_arms_are_refused(keys: dict) -> None:
    with pytest.raises(ValueError, match="varianc"):
        of_variance(**keys)
