"""Tests that every theory problem has to pass."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, nnls
from sklearn.svm import SVC

from mixup_core.config.building import built, with_values
from mixup_core.laws import Beta, BetaAb, Erm, Law, Midpoint
from mixup_core.problem import PROBLEMS, problem_named
from mixup_core.rules import RuleError
from mixup_core.theory.alternating_line import AlternatingLineConfig, optimal_probability
from mixup_core.theory.entropy_floor import EntropyFloorConfig, entropy_floor
from mixup_core.theory.gaussian_features import (
    GaussianFeaturesConfig,
    expected_excess,
    noise_square,
)
from mixup_core.theory.label_noise_bound import LabelNoiseBoundConfig, disagreement
from mixup_core.theory.logistic import slopes
from mixup_core.theory.mixup_expansion import expansion
from mixup_core.theory.spurious_feature import SpuriousFeatureConfig, errors, least_variance_share
from mixup_core.theory.support_vectors import (
    SupportVectorsConfig,
    draw_points,
    max_margin_direction,
    support_fraction,
)
from tests.mixup_core.theory.processes import assert_resumes_anywhere, finished, last

NAMES = [name for name, place in PROBLEMS.items() if place.startswith("mixup_core.theory.")]

SMALL: dict[str, dict[str, Any]] = {
    "entropy-floor": {"draws": 100},
    "linear-views": {"quantity": {"excess": {"points": 10}}, "epochs": 3},
    "alternating-line": {"hidden": 8, "epochs": 3},
    "support-vectors": {"epochs": 3},
    "moons": {"points": 20, "hidden": 8, "resolution": 10, "steps_per_epoch": 5, "epochs": 3},
    "two-layer": {"data.classes": 3, "network.power": 4, "network.init": 0.3, "epochs": 4},
    "label-noise-bound": {"draws": 100, "epochs": 3},
    "random-features": {"points": 10, "features": 8, "test_points": 50, "epochs": 4},
    "rare-features": {"dimension": 20, "points": 10, "steps_per_epoch": 5, "epochs": 3},
    "separability": {"first_points": 16, "epochs": 2},
    "spurious-feature": {"points": 20, "epochs": 2},
    "gaussian-features": {"samples": 20, "epochs": 3},
    "mixup-expansion": {"first_points": 8, "rank": 2, "test_points": 20, "epochs": 2},
}
"""A quick run of each problem whose defaults take longer."""


@pytest.mark.parametrize("name", NAMES)
def test_a_run_resumed_at_any_epoch_ends_with_the_same_bits(name: str) -> None:
    values = SMALL.get(name, {}) | {"law": {"beta": 1.0}}
    assert_resumes_anywhere(with_values(problem_named(name).config(), values))


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_value_lies_within_the_bounds_of_its_metric(name: str) -> None:
    """Intervals and the refusal of claims rely on the bounds; few points give extreme values."""
    problem = problem_named(name)
    few = {"points": 10} if name == "spurious-feature" else {}
    config = with_values(problem.config(), SMALL.get(name, {}) | {"law": {"beta": 1.0}} | few)
    outside = [
        f"{metric} {value} at seed {seed}"
        for seed in (0, 2, 13)
        for record in finished(problem.randomness.at_seed(config, seed))
        for metric, value in record.metrics.items()
        if not problem.metric(metric).allows(value)
    ]
    assert not outside


@pytest.mark.parametrize("name", NAMES)
def test_every_problem_describes_its_configurations_and_names_plain_methods(name: str) -> None:
    problem = problem_named(name)
    config = problem.config()
    assert problem.presentation.setting(config, problem.headline[0])
    assert hash(problem.comparing.population(config, problem.headline[0]))
    assert problem.cost.work(config) >= 1
    for law, method in (("erm", "erm"), ("midpoint", "midpoint"), ({"beta": 1.0}, "uniform")):
        assert problem.presentation.method(with_values(config, {"law": law})) == method
    assert problem.presentation.method(with_values(config, {"law": {"beta": 0.5}})) is None


@pytest.mark.parametrize(
    ("name", "values", "rule"),
    [
        ("alternating-line", {"classes": 4}, "classes <= points"),
        ("entropy-floor", {"epochs": 2}, "epochs == 1"),
        ("mixup-expansion", {"nodes": 7}, "even"),
        ("moons", {"points": 5}, "points must be even"),
        ("rare-features", {"switch_epoch": 17}, "switch_epoch <= epochs"),
        ("rare-features", {"law_after": "midpoint"}, "law_after needs a switch_epoch"),
        ("rare-features", {"patches": 5, "noise_features": 5}, "noise_features < patches"),
        ("rare-features", {"law": "midpoint", "schedule": "easy"}, "if schedule is set"),
        ("separability", {"first_points": 10}, "first_points > dimension"),
        ("separability", {"nodes": 3}, "nodes must be even"),
        (
            "separability",
            {"law": {"discrete": {"values": [0.5, 1.0], "shares": [0.7, 0.3]}}},
            "multiple of 1/nodes",
        ),
        ("spurious-feature", {"nodes": 5}, "nodes must be even"),
        ("support-vectors", {"points": 3}, "points must be even"),
        ("two-layer", {"data.noise_classes": 6}, "noise_classes < classes"),
        ("two-layer", {"data.delta1": 1.1}, "features [*] delta1 <= delta2"),
        ("two-layer", {"data.delta3": 0.06}, "delta3 <= delta4"),
        ("two-layer", {"epochs": 1_000}, "at a flow time of at most"),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    name: str, values: dict[str, Any], rule: str
) -> None:
    """`tests/contracts/test_ranges_of_fields.py` has the ranges of single fields."""
    with pytest.raises(RuleError, match=rule):
        built(problem_named(name).config, values)


LINE = AlternatingLineConfig(hidden=16, steps_per_epoch=5, epochs=3)


@pytest.mark.parametrize("law", [Beta(alpha=0.5), BetaAb(a=2.0, b=0.5), Midpoint(), Erm()])
@pytest.mark.parametrize(("points", "classes"), [(3, 2), (5, 3), (10, 2)])
def test_the_optimal_probability_matches_drawn_mixtures(
    law: Law, points: int, classes: int
) -> None:
    config = replace(LINE, law=law, points=points, classes=classes, radius=0.3)
    rng = np.random.default_rng(0)
    i, j = rng.integers(points, size=(2, 400_000))
    lam = law.draw(400_000, rng)
    near = np.abs(lam * i + (1 - lam) * j - config.middle) <= 0.3
    own = config.middle % classes
    labels = lam * (i % classes == own) + (1 - lam) * (j % classes == own)
    assert optimal_probability(config) == pytest.approx(labels[near].mean(), abs=0.01)


def test_the_closed_form_flips_between_alpha_4_and_alpha_32() -> None:
    """The public code of arXiv:2110.07647 fits the middle point at 1, and not at 32."""
    flip = brentq(lambda a: optimal_probability(replace(LINE, law=Beta(alpha=a))) - 0.5, 1, 64)
    assert 4 < flip < 32


FLOOR = EntropyFloorConfig(law=Beta(alpha=1.0), draws=20_000)


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=0.2), Beta(alpha=32.0)])
def test_the_estimate_lies_within_five_standard_errors(law: Law) -> None:
    for seed in range(3):
        metrics = last(replace(FLOOR, law=law, seed=seed))
        assert metrics["floor/exact"] == entropy_floor(law, 10)
        assert metrics["floor/gap"] <= 5 * metrics["floor/standard_error"]
        assert metrics["floor/gap"] == abs(metrics["floor/estimate"] - metrics["floor/exact"])


GAUSSIAN = GaussianFeaturesConfig(law=Beta(alpha=1.0), samples=200)


def test_noise_square_matches_drawn_pairs() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.uniform(-1, 1, (2, 200_000, 5))
    lam = rng.random(200_000)
    drawn = lam * (1 - lam) * ((first - second) ** 2).sum(axis=1)
    assert noise_square(Beta(alpha=1.0), 5) == pytest.approx((drawn**2).mean(), rel=0.02)
    assert noise_square(Erm(), 5) == 0


@pytest.mark.parametrize(("ratio", "limit"), [(0.5, 0.3), (2.0, 0.5 + 0.3), (4.0, 0.75 + 0.1)])
def test_the_expected_excess_has_the_known_values_at_time_0_and_infinity(
    ratio: float, limit: float
) -> None:
    assert expected_excess(ratio, 1e7, 0.3) == pytest.approx(limit, rel=2e-3)
    assert expected_excess(ratio, 0.0, 0.3) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_the_mean_risk_over_seeds_matches_the_closed_form(ratio: float) -> None:
    runs = [finished(replace(GAUSSIAN, ratio=ratio, seed=seed)) for seed in range(20)]
    for epoch in (4, 8, 24):
        risks = [run[epoch].metrics["risk/excess"] for run in runs]
        theory = runs[0][epoch].metrics["risk/theory"]
        error = 4 * np.std(risks) / np.sqrt(len(risks)) + 0.02
        assert np.mean(risks) == pytest.approx(theory, abs=error)


def test_without_noise_the_risk_never_rises() -> None:
    for ratio in (0.5, 1.0, 2.0):
        assert last(replace(GAUSSIAN, law=Erm(), ratio=ratio))["risk/rise"] < 1e-12


PAIRS = LabelNoiseBoundConfig(law=Beta(alpha=1.0), draws=50_000, epochs=3)


def test_disagreement_is_the_probability_of_different_labels() -> None:
    own, mixed = np.array([0.3]), np.array([0.9])
    assert disagreement(own, mixed, "sampled") == pytest.approx(0.3 * 0.1 + 0.7 * 0.9)
    assert disagreement(own, mixed, "argmax") == pytest.approx(0.9)
    assert disagreement(1 - own, mixed, "argmax") == pytest.approx(0.1)
    assert disagreement(np.array([0.49]), mixed, "argmax") == pytest.approx(0.9)


def test_mean_noise_matches_a_sum_over_a_grid() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-0.75 * np.sin(2 * x)))

    nodes = (np.arange(60) + 0.5) / 60
    lam, x, y = np.meshgrid(nodes, 4 * nodes - 2, 4 * nodes - 2)
    own, mixed = f(lam * x + (1 - lam) * y), lam * f(x) + (1 - lam) * f(y)
    expected = (own * (1 - mixed) + mixed * (1 - own)).mean()
    metrics = last(replace(PAIRS, epochs=1))
    assert metrics["noise/probability"] == pytest.approx(expected, abs=0.002)
    assert metrics["noise/sampled"] == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=0.3), Beta(alpha=1.0)])
def test_the_bound_never_fails_with_sampled_labels(law: Law) -> None:
    for record in finished(replace(PAIRS, law=law, epochs=8)):
        assert record.metrics["bound/failures"] == 0
        assert record.metrics["noise/probability"] >= record.metrics["bound/distance"]
        assert record.metrics["bound/half_sup"] == record.metrics["bound/distance"] / 2


def test_the_printed_bound_fails_for_16_and_its_half_form_for_6_of_1000_pairs() -> None:
    """Theorem 1 of arXiv:2303.01475 is wrong as printed; another program found these shares."""
    config = replace(PAIRS, truth="argmax", first_steepness=3.0, epochs=1, draws=200_000)
    metrics = last(config)
    assert metrics["bound/failures"] == pytest.approx(0.016, abs=0.001)
    assert metrics["bound/half_sup_failures"] == pytest.approx(0.006, abs=0.0007)


SPURIOUS = SpuriousFeatureConfig(points=60, nodes=4, epochs=3)


def test_errors_match_drawn_points() -> None:
    rng = np.random.default_rng(0)
    labels = rng.choice([-1.0, 1.0], 300_000)
    weights = np.array([1.0, 3.0])
    core = labels * 2.0 + 0.5 * rng.normal(size=labels.size)
    found = errors(SPURIOUS, 0.4, weights)
    signs = (np.ones_like(labels), rng.choice([-1.0, 1.0], labels.size), -np.ones_like(labels))
    for sign, expected in zip(signs, found, strict=True):
        spurious = sign * labels * 0.5 + 0.4 * rng.normal(size=labels.size)
        wrong = (labels * (weights[0] * core + weights[1] * spurious) <= 0).mean()
        assert expected == pytest.approx(wrong, abs=0.003)


def test_the_least_variance_share_minimises_the_variance() -> None:
    variances, means = np.array([0.25, 0.01]), np.array([2.0, 0.5])

    shares = np.linspace(0, 1, 100_001)[:, None]
    weights = np.hstack([1 - shares, shares]) / means
    best = shares[np.argmin(weights**2 @ variances)]
    assert least_variance_share(SPURIOUS, 0.1) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("law", [Midpoint(), Beta(alpha=1.0)])
def test_mixup_without_decay_and_with_many_points_reaches_the_least_variance_share(
    law: Law,
) -> None:
    config = replace(SPURIOUS, law=law, points=1000, decay=1e-9, first_sd=0.2, epochs=1)
    (record,) = finished(config)
    expected = record.metrics["weight/least_variance"]
    assert record.metrics["weight/spurious"] == pytest.approx(expected, rel=0.15)


SUPPORT = SupportVectorsConfig(law=Beta(alpha=1.0), steps_per_epoch=20, epochs=3)


@pytest.mark.parametrize(("dimension", "shift"), [(200, 0.0), (20, 1.5), (4, 4.0)])
def test_the_maximum_margin_direction_is_the_shortest(dimension: int, shift: float) -> None:
    inputs, labels = draw_points(replace(SUPPORT, dimension=dimension, shift=shift, seed=1))
    direction = max_margin_direction(inputs, labels)
    margins = labels * (inputs @ direction)
    assert margins.min() == pytest.approx(1, abs=1e-8)
    # The shortest of all such vectors is a sum of support vectors with weights of one sign.
    _, left = nnls((labels[:, None] * inputs)[margins < 1 + 1e-6].T, direction)
    assert left == pytest.approx(0, abs=1e-6)


def test_the_support_fraction_matches_a_support_vector_machine() -> None:
    inputs, labels = draw_points(SUPPORT)
    # a constant feature of no length stands for the missing intercept
    machine = SVC(kernel="precomputed", C=1e6, tol=1e-8).fit(inputs @ inputs.T, labels)
    assert support_fraction(inputs, labels) == 1
    assert len(machine.support_) == 20
    few, signs = draw_points(replace(SUPPORT, dimension=20, shift=1.5))
    assert 0.2 < support_fraction(few, signs) < 0.9


def test_overlapping_classes_have_no_maximum_margin_direction() -> None:
    inputs, labels = draw_points(replace(SUPPORT, dimension=2))
    assert max_margin_direction(inputs, labels) is None
    metrics = last(replace(SUPPORT, dimension=2))
    assert not {"margin/cosine", "support/fraction"} & set(metrics)


SCORES_RNG = np.random.default_rng(0)
LABELS = np.where(np.arange(40) % 2, 1.0, -1.0)


def test_the_error_of_the_expansion_falls_with_the_fourth_power_of_the_scores() -> None:
    scores = SCORES_RNG.normal(size=40) + LABELS
    lams = Beta(alpha=1.0).nodes_of_pairs(32)
    left = []
    for scale in (0.2, 0.1, 0.05):
        plain, mixed = (slopes(scale * scores, LABELS, each)[0] for each in (np.ones(1), lams))
        left.append(abs(mixed - plain - sum(expansion(scale * scores, LABELS, lams))))
    assert left[0] / left[1] == pytest.approx(2**4, rel=0.2)  # h''' is odd, so of order four
    assert left[1] / left[2] == pytest.approx(2**4, rel=0.2)


def test_the_expansion_adds_no_terms_without_mixing() -> None:
    assert expansion(SCORES_RNG.normal(size=40), LABELS, np.ones(1)) == (0, 0)
