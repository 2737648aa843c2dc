"""LINEAR_VIEWS: linear models on two features per class, and what each law makes them learn.

The data (Chidambaram et al. 2023, arXiv:2210.13512, definition 3.1): each class y has two unit
features v_{y,1}, v_{y,2}; all features are orthogonal. A point of class y is

    x = beta v_{y,1} + (1 - beta) v_{y,2},   beta ~ U[0.1, 0.9],   y uniform over k classes,

and a linear model has the logits g_y(x) = <w_y, x>. Only its correlations <w_y, v_{s,l}> matter, so
the features are taken to be the canonical basis of R^{2k}, without loss of generality.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from mixup_core.arrays import Floats, scipy, special
from mixup_core.config.checked import Checked
from mixup_core.config.limits import NonNegative, Positive, Range
from mixup_core.contracts import weights_of
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Seed
from mixup_core.seeding import stream
from mixup_core.theory.synthetic import Metrics, by_record, metric, synthetic_problem

BETA_RANGE = (0.1, 0.9)
"""Smallest and largest beta, the weight of a point's first feature."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Excess(Checked):
    """Quantity to compute: how far a model's mixed loss is above its infimum, as the weights grow.

    From record to record, the weights of a fixed linear model are multiplied by a larger scale.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, lemma 3.2.
    """

    # Frozen: each `problem`, `tag`, field name, default and metric name in this file. After a
    # change, stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "excess"

    first: NonNegative = 1.0
    """Correlation <w_y, v_{y,1}> of every class."""
    second: NonNegative = 1.0
    """Correlation <w_y, v_{y,2}> of every class."""
    first_class: NonNegative = 1.0
    """Factor by which both correlations of class 0 are multiplied."""
    points: Annotated[int, Range(2, 1000)] = 200
    """Number of training points; the loss is the mean over all their ordered pairs."""

    @property
    def is_equal(self) -> bool:
        """True if all correlations are equal, so that the excess has a closed form."""
        return self.first == self.second and self.first_class == 1

    def measured(self, config: "LinearViewsConfig", gamma: float) -> Metrics:
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
        rng = stream(config.seed, "training points")
        labels = rng.integers(config.classes, size=self.points)
        share = rng.uniform(*BETA_RANGE, size=self.points)
        factor = np.where(labels == 0, self.first_class, 1.0)
        own_logit = gamma * factor * (share * self.first + (1 - share) * self.second)
        logits = np.zeros((self.points, config.classes))
        logits[np.arange(self.points), labels] = own_logit
        nodes = config.law.nodes(config.nodes)
        mean = float(np.mean([pair_excess(logits, labels, lam).mean() for lam in nodes]))
        if not self.is_equal:
            return {"excess/measured": mean}
        exact = equal_excess(gamma * self.first, config.law, config.classes, config.nodes)
        return {"excess/measured": mean, "excess/exact": exact}


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap(Checked):
    """Quantity to compute: how close the mixed loss of a family of models comes to its infimum.

    In each model, all weights have one correlation C with the features of their class.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, proposition 3.3.
    """

    tag: ClassVar = "gap"

    draws: Annotated[int, Range(2, 1_000_000)] = 4000
    """Number of values of lam drawn from the law, to estimate the smallest excess by sampling."""

    def measured(self, config: "LinearViewsConfig", correlation: float) -> Metrics:
        nodes = config.law.nodes(config.nodes)
        exact, best = least_gap(nodes, config.classes)
        drawn = weights_of(config.law, self.draws, stream(config.seed, "mixing"))
        measured = {
            "gap/minimum": exact,
            "gap/sampled": least_gap(drawn, config.classes)[0],
            "gap/at_scale": float(equal_gap(correlation, nodes, config.classes).mean()),
        }
        return measured | ({"gap/best_scale": best} if has_root(nodes) else {})


@dataclass(frozen=True, kw_only=True, slots=True)
class Gradients(Checked):
    """Quantity to compute: the mixed loss's gradient along a class's second, unlearned feature.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, propositions 3.4 and 3.5.
    """

    tag: ClassVar = "gradients"

    draws: Annotated[int, Range(2, 10_000_000)] = 400_000
    """Number of pairs drawn for the sampled value."""

    def measured(self, config: "LinearViewsConfig", c: float) -> Metrics:
        law, classes, delta = config.law, config.classes, c * math.log(config.classes)
        rng = stream(config.seed, "mixing")
        sampled, difference = sampled_correlations(law, classes, delta, self.draws, rng)
        exact, exact_difference = gradient_correlations(law, classes, delta, config.nodes)
        return {
            "gradient/second": sampled,
            "gradient/second_exact": exact,
            "gradient/second_times_k2": exact * classes**2,
            "gradient/difference": difference,
            "gradient/difference_exact": exact_difference,
            "gradient/bound": classes ** (1 - 0.1 * c) if not law.mixes else 1 / classes**2,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearViewsConfig(Checked):
    """Configuration of a run: the quantity to compute, and the law of the mixing weight lam.

    The quantity is computed at a scale that doubles with each record: a factor gamma of the weights
    (`excess`), their correlation C with the features (`gap`), or c, their correlation with the
    first feature divided by log k (`gradients`).
    """

    problem: ClassVar = "linear-views"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam."""
    quantity: Excess | Gap | Gradients = field(default_factory=Excess)
    """The quantity that the run computes."""
    classes: Annotated[int, Range(2)] = 5
    """Number of classes, k in the source."""
    first_scale: Positive = 1.25
    """Scale at the first record: gamma for `excess`, C for `gap`, for `gradients` c in
    delta = c log k.
    """
    nodes: Annotated[int, Range(1, 100_000)] = 200
    """Number of quantiles of lam that represent a random law in formulas and sums over pairs."""
    epochs: Annotated[int, Range(1, 60)] = 7
    """Number of records of a run; the scale doubles with each."""
    seed: Seed = 0
    """Seed of the points and of sampled values."""

    def check(self) -> None:
        self.law.require_nodes(self)

    def scale_at(self, epoch: int) -> float:
        """Return the scale at a record, first_scale * 2^epoch: gamma, C or c (see the class)."""
        return self.first_scale * 2.0**epoch


def record(config: LinearViewsConfig, epoch: int) -> Metrics:
    scale = config.scale_at(epoch)
    return {"scale": scale, **config.quantity.measured(config, scale)}


def lacks(config: LinearViewsConfig, metric: str, records: int) -> str | None:
    """Return None if a run measures a metric, else how to measure it: `set quantity to gap`."""
    del records
    needed = {"excess": "excess", "gap": "gap", "gradient": "gradients"}
    kind = needed.get(metric.partition("/")[0], config.quantity.tag)
    if config.quantity.tag != kind:
        return f"set quantity to {kind}"
    if metric == "excess/exact" and isinstance(config.quantity, Excess):
        return None if config.quantity.is_equal else "set first equal to second and first_class: 1"
    if metric == "gap/best_scale" and not has_root(config.law.nodes(config.nodes)):
        return "under this law, the gap falls without end; set another law"
    return None


def divergence(own: Any, partner: Any, log_others: Any, share: Any) -> Floats:
    """Return the cross entropy on a mixed label minus the entropy of this label, in nats.

    With q (`share`) the label weight of the point
    itself, z (`own`) and z' (`partner`) the logits of its label and of its partner's, and L
    (`log_others`) the log of the summed exponentials of all other logits,

        KL = log(q e^d + 1 - q) - q d  +  log(1 + e^L / (e^z + e^z')),   d = z - z' - logit(q).

    For q = 1, KL = log(1 + e^{L - z}): `partner` is not used, and L includes z' if the partner has
    another label.
    """
    is_pure = np.asarray(share) == 1
    inner = np.where(is_pure, 0.5, share)
    apart = np.where(is_pure, 0.0, own - partner - special.logit(inner))
    small = np.clip(apart, -1, 1)
    between = np.where(
        np.abs(apart) <= 1,
        np.log1p(inner * np.expm1(small)) - inner * small,
        np.logaddexp(np.log(inner) + apart, np.log1p(-inner)) - inner * apart,
    )
    both = np.where(is_pure, own, np.logaddexp(own, partner))
    excess: Floats = np.where(is_pure, 0.0, between) + np.logaddexp(0.0, log_others - both)
    return excess


def pair_excess(logits: Floats, labels: Any, lam: float) -> Floats:
    """Return each mixed pair's cross entropy minus the entropy of its label, in nats: (N, N).

    The model is linear, so the logits of a mixed point are the mixed logits.
    """
    num_points, num_classes = logits.shape
    mixed = lam * logits[:, None] + (1 - lam) * logits
    rows, columns = np.broadcast_arrays(labels[:, None], labels[None, :])
    if lam < 0.5:  # the own label gets the larger share, which is never 0
        rows, columns = columns, rows
    own = np.take_along_axis(mixed, rows[..., None], 2)[..., 0]
    partner = np.take_along_axis(mixed, columns[..., None], 2)[..., 0]
    share = np.where(rows == columns, 1.0, max(lam, 1 - lam))
    known = np.arange(num_classes) == rows[..., None]
    known |= (np.arange(num_classes) == columns[..., None]) & (share < 1)[..., None]
    others = special.logsumexp(np.where(known, -np.inf, mixed), axis=2)
    return divergence(own, partner, others, share).reshape(num_points, num_points)


def equal_gap(correlation: float, lam: Any, classes: int) -> Floats:
    """Return the cross entropy above its infimum on a point mixed from two classes, in nats.

    In the linear model, the weights of every class have the same correlation C with each feature of
    the class. The logits of the mixed point are then lam C and (1 - lam) C for its two classes, and
    0 for the k - 2 others. At lam = 1/2 the result is log(2 + (k - 2) e^{-C / 2}) - log 2.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, the proof of lemma 3.2.
    """
    share = np.maximum(lam, 1 - np.asarray(lam))
    log_zeros = math.log(classes - 2) if classes > 2 else -math.inf
    partner = (1 - share) * correlation
    others = np.where(share == 1, np.logaddexp(log_zeros, partner), log_zeros)
    return divergence(share * correlation, partner, others, share)


def equal_excess(correlation: float, law: Law, classes: int, nodes: int) -> float:
    """Return the expected mixed loss above its infimum, in nats, if all correlations equal C.

    (k - 1)/k E[equal_gap(C, lam)] + (1/k) log(1 + (k - 1) e^{-C})
    """
    apart = float(equal_gap(correlation, law.nodes(nodes), classes).mean())
    same = math.log1p((classes - 1) * math.exp(-correlation))
    return (classes - 1) / classes * apart + same / classes


def has_root(lam: Floats) -> bool:
    """Return whether the mean excess is least at a finite correlation (see `least_gap`)."""
    return not bool(np.isin(lam, [0.0, 0.5, 1.0]).all())


def least_gap(lam: Floats, classes: int) -> tuple[float, float]:
    """Return the smallest mean of `equal_gap` over lam, and the correlation C there.

    The mean is convex in C, so its derivative has one root. If each value of lam is one of 0, 1/2
    and 1, there is none: the mean tends to 0 as C grows, and (0, infinity) is returned.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, proposition 3.3.
    """
    slopes = np.stack([lam, 1 - lam])
    target = float((lam**2 + (1 - lam) ** 2).mean())
    if not has_root(lam):
        return 0.0, math.inf

    def derivative(correlation: float) -> float:
        exponentials = np.exp(correlation * (slopes - slopes.max(axis=0)))
        zeros = (classes - 2) * np.exp(-correlation * slopes.max(axis=0))
        softmax = exponentials / (exponentials.sum(axis=0) + zeros)
        return float((softmax * slopes).sum(axis=0).mean()) - target

    upper = 1.0
    while derivative(upper) < 0:
        upper *= 2
    best = float(scipy.optimize.brentq(derivative, 0.0, upper, xtol=1e-12, rtol=1e-13))
    return float(equal_gap(best, lam, classes).mean()), best


def _pulls(delta: float, classes: int, own: Any, partner: Any, lam: Any) -> tuple[Floats, Floats]:
    """Return target minus softmax of class y, for pairs of two classes and for pairs within y."""
    first, second = lam * own * delta, (1 - lam) * partner * delta
    log_zeros = math.log(classes - 2) if classes > 2 else -math.inf
    apart = lam - special.expit(first - np.logaddexp(second, log_zeros))
    same = special.expit(math.log(classes - 1) - first - second)
    return apart, same


def gradient_correlations(
    law: Law, classes: int, delta: float, nodes: int = 200
) -> tuple[float, float]:
    """Return the negative gradient of the mixed loss J along the features of a class.

    Each class y has two features, v_{y,1} and v_{y,2}; a point of class y is
    beta v_{y,1} + (1 - beta) v_{y,2} with a random beta. A linear model has learned only the first:
    its weights are w_y = delta v_{y,1}. Let phi, phi', phi'' be the softmax of class y at a mixed
    pair if only the first, only the second, or both points are of class y. Let u be 1 - beta in the
    first result and 2 beta - 1 in the second, for the beta of the point of class y; if both are of
    class y, u belongs to the first point and u' (with its beta') to the second. Each result is an
    expectation over all ordered pairs:

        (k-1)/k^2 E[(lam - phi) lam u + (1 - lam - phi') (1 - lam) u]
            + 1/k^2 E[(1 - phi'') (lam u + (1 - lam) u')].

    For midpoint and ERM the first result is

        (k-1)/k^2 E[(1 - 2 phi)(1 - beta)/2] + 1/k^2 E[(1 - phi'')(1 - (beta + beta')/2)]   and
        (1/k) E[(1 - phi)(1 - beta)],   phi = e^{beta delta} / (e^{beta delta} + k - 1).

    Source: Chidambaram et al. 2023, arXiv:2210.13512, propositions 3.4 and 3.5: with
    delta = c log k for a constant c, the first result stays above Theta(1/k^2) for midpoint and
    falls as O(k^{1 - 0.1 c}) for ERM.
    """
    places, weights = np.polynomial.legendre.leggauss(128)
    low, high = BETA_RANGE
    betas, weights = low + (high - low) * (places + 1) / 2, weights / 2
    own, partner, weight = betas[:, None], betas[None, :], weights[:, None] * weights
    totals = np.zeros(2)
    quantiles = law.nodes(nodes)
    for lam in quantiles:
        apart, same = _pulls(delta, classes, own, partner, lam)
        swapped, _ = _pulls(delta, classes, own, partner, 1 - lam)
        pull = (classes - 1) * (apart * lam + swapped * (1 - lam))
        for index, (u, v) in enumerate([(1 - own, 1 - partner), (2 * own - 1, 2 * partner - 1)]):
            totals[index] += (weight * (pull * u + same * (lam * u + (1 - lam) * v))).sum()
    second, difference = totals / classes**2 / len(quantiles)
    return float(second), float(difference)


def sampled_correlations(
    law: Law, classes: int, delta: float, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Estimate the results of `gradient_correlations` by sampling; a mean over the classes."""
    labels = rng.integers(classes, size=(2, draws))
    own, partner = rng.uniform(*BETA_RANGE, size=(2, draws))
    lam = weights_of(law, draws, rng)
    is_same = labels[0] == labels[1]
    first, same = _pulls(delta, classes, own, partner, lam)
    second, _ = _pulls(delta, classes, partner, own, 1 - lam)
    sums = []
    for u, v in ((1 - own, 1 - partner), (2 * own - 1, 2 * partner - 1)):
        together = same * (lam * u + (1 - lam) * v)
        sums.append(np.where(is_same, together, first * lam * u + second * (1 - lam) * v))
    return float(sums[0].mean()) / classes, float(sums[1].mean()) / classes


LINEAR_VIEWS = synthetic_problem(
    LinearViewsConfig,
    by_record(record),
    title="linear models on two features per class (Chidambaram et al. 2023, section 3)",
    metrics={
        "excess/measured": metric("excess of the mixed loss over its lower bound", "nats"),
        "excess/exact": metric("excess of the mixed loss, closed form", "nats", 0.0),
        "gap/minimum": metric("smallest excess with equal correlations", "nats", 0.0),
        "gap/sampled": metric("smallest excess over all scales", "nats", 0.0),
        "gap/at_scale": metric("excess at correlation C", "nats", 0.0),
        "gap/best_scale": metric("correlation C at the smallest excess", least=0.0),
        "gradient/second": metric(
            "negative gradient along the second feature, sampled", higher=True
        ),
        "gradient/second_exact": metric("negative gradient along the second feature", higher=True),
        "gradient/second_times_k2": metric(
            "negative gradient along the second feature times k^2", higher=True
        ),
        "gradient/difference": metric(
            "negative gradient along first minus second feature, sampled"
        ),
        "gradient/difference_exact": metric("negative gradient along first minus second feature"),
        "gradient/bound": metric("bound of the proposition, up to a constant"),
        "scale": metric("scale (gamma, C or c)", least=0.0),
    },
    headline=("excess/measured", "gap/minimum", "gradient/second"),
    axis=Axis(label="scale of the model", unit="doubling", scale="log", metric="scale"),
    lacks=lacks,
    objectives=("excess/measured", "gap/minimum"),
    population=lambda config, _: (type(config.quantity).__name__, config.classes),
    beside=("*/exact", "*/sampled", "*/second_exact"),
    curves=(("gap/at_scale", "gradient/second_exact", "excess/exact"),),
    setting=lambda config, _: f"two features of each of {config.classes} classes, a linear model",
)
