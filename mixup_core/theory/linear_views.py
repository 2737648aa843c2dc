"""LINEAR_VIEWS: linear models on two orthogonal features per class, and what each law asks of them.

The setting (Chidambaram et al. 2023, arXiv:2210.13512, definition 3.1): each class y has two unit
features v_{y,1}, v_{y,2}, all orthogonal. A point of class y is

    x = beta v_{y,1} + (1 - beta) v_{y,2},   beta ~ U[0.1, 0.9],   y uniform over k classes,

and a linear model has the logits g_y(x) = <w_y, x>. All that matters of it are its correlations
<w_y, v_{s,l}>, so the features are the canonical basis of R^{2k} and nothing is lost.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, assert_never

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Metric, Problem, Seed
from mixup_core.rules import require
from mixup_core.seeding import stream
from mixup_core.theory.array_process import ArrayProcess
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import NonNegative, Positive, Range

BETA_RANGE = (0.1, 0.9)
"""Range of beta, the share of a point's first feature."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Excess(Checked):
    """Lemma 3.2: how far a model with given correlations is above the floor, as it is scaled up."""

    tag: ClassVar = "excess"

    first: NonNegative = 1.0
    """<w_y, v_{y,1}> of every class."""
    second: NonNegative = 1.0
    """<w_y, v_{y,2}> of every class."""
    first_class: NonNegative = 1.0
    """Factor of both correlations of class 0."""
    points: Annotated[int, Range(2, 1000)] = 200
    """Size of the training set; the loss is over all its ordered pairs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap(Checked):
    """Proposition 3.3: the least excess, over C, of a model whose correlations are all C."""

    tag: ClassVar = "gap"

    draws: Annotated[int, Range(2, 1_000_000)] = 4000
    """Weights drawn for the sampled value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gradients(Checked):
    """Propositions 3.4 and 3.5: what pulls a class towards the feature it has not learned yet."""

    tag: ClassVar = "gradients"

    draws: Annotated[int, Range(2, 10_000_000)] = 400_000
    """Pairs drawn for the sampled value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearViewsConfig(Checked):
    """One quantity of one law, along a scale that doubles from record to record."""

    problem: ClassVar = "linear-views"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam."""
    quantity: Excess | Gap | Gradients = field(default_factory=Excess)
    """The quantity that is computed."""
    classes: Annotated[int, Range(2)] = 5
    """k of the source."""
    first_scale: Positive = 1.25
    """Scale of the first record. It is gamma, which multiplies the model, for the excess; C for the
    gap; c of Delta = c log k for the gradients."""
    nodes: Annotated[int, Range(1, 100_000)] = 200
    """Quantiles that stand for a random law in closed forms and in sums over pairs."""
    epochs: Annotated[int, Range(1, 60)] = 7
    """Records; each doubles the scale."""
    seed: Seed = 0
    """Names the points and draws."""

    def check(self) -> None:
        """Check the rules that join several fields.

        Raises:
            RuleError: If the nodes do not stand for the law.
        """
        fits = self.law.has_nodes(self.nodes)
        require(
            fits,
            "every share of a discrete law must be a multiple of 1/nodes",
            self,
            "nodes",
            "law",
        )

    def scale_at(self, epoch: int) -> float:
        """Return the scale of a 0-based record."""
        return self.first_scale * 2.0**epoch


def divergence(own: Any, partner: Any, log_others: Any, share: Any) -> Floats:
    """Return the cross entropy of a mixed label above its entropy, in nats, without cancellation.

    With q the share of the own label, z, z' the logits of both labels and L the log of the summed
    exponentials of all other logits,

        KL = log(q e^d + 1 - q) - q d  +  log(1 + e^L / (e^z + e^z')),   d = z - z' - logit(q),

    and for q = 1, where the partner's label is another one than the own, z' belongs to the others.

    Args:
        own: z, of any shape that the others broadcast with.
        partner: z'; of no meaning where the share is 1.
        log_others: L, -inf where there are no other labels; with z' in it where the share is 1.
        share: q, in (0, 1].
    """
    from scipy.special import logit

    is_pure = np.asarray(share) == 1
    inner = np.where(is_pure, 0.5, share)
    apart = np.where(is_pure, 0.0, own - partner - logit(inner))
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
    """Return how far each mixed pair's loss is above its label's entropy: (N, N), nats.

    Args:
        logits: (N, k), of the points; those of lam x_i + (1 - lam) x_j follow by linearity.
        labels: (N,), integers in [0, k).
        lam: Weight of the row's point, in [0, 1].
    """
    from scipy.special import logsumexp

    num_points, num_classes = logits.shape
    mixed = lam * logits[:, None] + (1 - lam) * logits
    rows, columns = np.broadcast_arrays(labels[:, None], labels[None, :])
    if lam < 0.5:  # the larger share is the own label's, so that it is never 0
        rows, columns = columns, rows
    own = np.take_along_axis(mixed, rows[..., None], 2)[..., 0]
    partner = np.take_along_axis(mixed, columns[..., None], 2)[..., 0]
    share = np.where(rows == columns, 1.0, max(lam, 1 - lam))
    known = np.arange(num_classes) == rows[..., None]
    known |= (np.arange(num_classes) == columns[..., None]) & (share < 1)[..., None]
    others = logsumexp(np.where(known, -np.inf, mixed), axis=2)
    return divergence(own, partner, others, share).reshape(num_points, num_points)


def equal_gap(correlation: float, lam: Any, classes: int) -> Floats:
    """Return the excess of a pair of two classes where all correlations are C, in nats.

    The logits are lam C, (1 - lam) C and k - 2 zeros: at lam = 1/2 the excess is
    log(2 + (k - 2) e^{-C / 2}) - log 2.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, the proof of lemma 3.2.

    Args:
        correlation: C.
        lam: In [0, 1], any shape.
        classes: k.
    """
    share = np.maximum(lam, 1 - np.asarray(lam))
    log_zeros = math.log(classes - 2) if classes > 2 else -math.inf
    partner = (1 - share) * correlation
    others = np.where(share == 1, np.logaddexp(log_zeros, partner), log_zeros)
    return divergence(share * correlation, partner, others, share)


def equal_excess(correlation: float, law: Law, classes: int, nodes: int) -> float:
    """Return the expected excess of a model whose correlations are all C, in nats.

        (k - 1)/k E[equal_gap(C, lam)] + (1/k) log(1 + (k - 1) e^{-C})

    Source: as `equal_gap`; the second term is that of a pair of one class.
    """
    apart = float(equal_gap(correlation, law.nodes(nodes), classes).mean())
    same = math.log1p((classes - 1) * math.exp(-correlation))
    return (classes - 1) / classes * apart + same / classes


def least_gap(lam: Floats, classes: int) -> tuple[float, float]:
    """Return the least mean of `equal_gap` over C, and the C where it is reached.

    The mean is convex in C, so that its derivative, E[sum of softmax times logit slope] minus the
    slope of the labels, has one root. For lam = 1/2 and lam = 0 or 1 alone it has none: the gap
    tends to 0 as C grows, and that is what is returned, with an infinite C.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, proposition 3.3.

    Args:
        lam: (nodes,), values of equal weight.
        classes: k.
    """
    slopes = np.stack([lam, 1 - lam])
    target = float((lam**2 + (1 - lam) ** 2).mean())
    if np.isin(lam, [0.0, 0.5, 1.0]).all():
        return 0.0, math.inf

    from scipy.optimize import brentq

    def derivative(correlation: float) -> float:
        exponentials = np.exp(correlation * (slopes - slopes.max(axis=0)))
        zeros = (classes - 2) * np.exp(-correlation * slopes.max(axis=0))
        softmax = exponentials / (exponentials.sum(axis=0) + zeros)
        return float((softmax * slopes).sum(axis=0).mean()) - target

    upper = 1.0
    while derivative(upper) < 0:
        upper *= 2
    best = float(brentq(derivative, 0.0, upper, xtol=1e-12, rtol=1e-13))
    return float(equal_gap(best, lam, classes).mean()), best


def _pulls(delta: float, classes: int, own: Any, partner: Any, lam: Any) -> tuple[Floats, Floats]:
    """Return (target - softmax) of the own class in a mixed pair: partner of another class, same.

    The model is w_y = delta v_{y,1} for every class, so a point with share beta has the logit
    beta delta at its own class and 0 elsewhere.

    Args:
        delta: Correlation with the first feature.
        classes: k.
        own: beta of the point of class y, weighted by lam.
        partner: beta of the other.
        lam: Weight of the first.
    """
    from scipy.special import expit

    first, second = lam * own * delta, (1 - lam) * partner * delta
    log_zeros = math.log(classes - 2) if classes > 2 else -math.inf
    apart = lam - expit(first - np.logaddexp(second, log_zeros))
    same = expit(math.log(classes - 1) - first - second)
    return apart, same


def gradient_correlations(
    law: Law, classes: int, delta: float, nodes: int = 200
) -> tuple[float, float]:
    """Return <-grad_{w_y} J, v_{y,2}> and <-grad_{w_y} J, v_{y,1} - v_{y,2}> where w = delta v_1.

    Expectations over all ordered pairs, with u = 1 - beta or 2 beta - 1 the component of a point:

        (k-1)/k^2 E[(lam - phi) lam u + (1 - lam - phi') (1 - lam) u]
            + 1/k^2 E[(1 - phi'') (lam u + (1 - lam) u')],

    phi, phi', phi'' the softmax of class y in a pair where it comes first, second, or twice. For
    midpoint and ERM that is

        (k-1)/k^2 E[(1 - 2 phi)(1 - beta)/2] + 1/k^2 E[(1 - phi'')(1 - (beta + beta')/2)]   and
        (1/k) E[(1 - phi)(1 - beta)],   phi = e^{beta delta} / (e^{beta delta} + k - 1).

    By Gauss-Legendre quadrature in beta and beta' (128 nodes each) and `nodes` quantiles in lam.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, propositions 3.4 and 3.5: the first stays
    above Theta(1/k^2) for midpoint and falls as O(k^{1 - 0.1 c}) for ERM, delta = c log k.
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
    """Return `gradient_correlations` estimated from drawn pairs, averaged over the classes."""
    labels = rng.integers(classes, size=(2, draws))
    own, partner = rng.uniform(*BETA_RANGE, size=(2, draws))
    lam = law.draw(draws, rng)
    is_same = labels[0] == labels[1]
    first, same = _pulls(delta, classes, own, partner, lam)
    second, _ = _pulls(delta, classes, partner, own, 1 - lam)
    sums = []
    for u, v in ((1 - own, 1 - partner), (2 * own - 1, 2 * partner - 1)):
        together = same * (lam * u + (1 - lam) * v)
        sums.append(np.where(is_same, together, first * lam * u + second * (1 - lam) * v))
    return float(sums[0].mean()) / classes, float(sums[1].mean()) / classes


def start(config: LinearViewsConfig, data_root: Path | None, device: str) -> ArrayProcess:
    """Return the computation before its first scale."""
    del data_root, device

    def record(epoch: int) -> Mapping[str, float]:
        scale = config.scale_at(epoch)
        match config.quantity:
            case Excess():
                measured = _excess(config, config.quantity, scale)
            case Gap():
                measured = _gap(config, config.quantity, scale)
            case Gradients():
                measured = _gradients(config, config.quantity, scale)
            case _:
                assert_never(config.quantity)
        return {"scale": scale, **measured}

    return ArrayProcess.of_records(config.epochs, record)


def _excess(config: LinearViewsConfig, model: Excess, gamma: float) -> dict[str, float]:
    rng = stream(config.seed, "training points")
    labels = rng.integers(config.classes, size=model.points)
    share = rng.uniform(*BETA_RANGE, size=model.points)
    factor = np.where(labels == 0, model.first_class, 1.0)
    own_logit = gamma * factor * (share * model.first + (1 - share) * model.second)
    logits = np.zeros((model.points, config.classes))
    logits[np.arange(model.points), labels] = own_logit
    nodes = config.law.nodes(config.nodes)
    mean = float(np.mean([pair_excess(logits, labels, lam).mean() for lam in nodes]))
    if model.first == model.second and model.first_class == 1:
        exact = equal_excess(gamma * model.first, config.law, config.classes, config.nodes)
        return {"excess/measured": mean, "excess/exact": exact}
    return {"excess/measured": mean}


def _gap(config: LinearViewsConfig, gap: Gap, correlation: float) -> dict[str, float]:
    nodes = config.law.nodes(config.nodes)
    exact, best = least_gap(nodes, config.classes)
    drawn = config.law.draw(gap.draws, stream(config.seed, "mixing"))
    measured = {
        "gap/minimum": exact,
        "gap/sampled": least_gap(drawn, config.classes)[0],
        "gap/at_scale": float(equal_gap(correlation, nodes, config.classes).mean()),
    }
    return measured | ({"gap/best_scale": best} if math.isfinite(best) else {})


def _gradients(config: LinearViewsConfig, quantity: Gradients, c: float) -> dict[str, float]:
    law, classes, delta = config.law, config.classes, c * math.log(config.classes)
    rng = stream(config.seed, "mixing")
    sampled, difference = sampled_correlations(law, classes, delta, quantity.draws, rng)
    exact, exact_difference = gradient_correlations(law, classes, delta, config.nodes)
    return {
        "gradient/second": sampled,
        "gradient/second_exact": exact,
        "gradient/second_times_k2": exact * classes**2,
        "gradient/difference": difference,
        "gradient/difference_exact": exact_difference,
        "gradient/bound": classes ** (1 - 0.1 * c) if not law.mixes else 1 / classes**2,
    }


def measures(config: LinearViewsConfig, metric: str) -> bool:
    """Return whether a metric belongs to the quantity that is computed."""
    heads = {Excess: "excess", Gap: "gap", Gradients: "gradient"}
    return metric.partition("/")[0] == heads[type(config.quantity)]


def setting(config: LinearViewsConfig, metric: str) -> str:
    """Return the size of the setting."""
    del metric
    return f"two features of each of {config.classes} classes, a linear model"


LINEAR_VIEWS = Problem(
    name="linear-views",
    title="linear models on two features per class (Chidambaram et al. 2023, section 3)",
    config=LinearViewsConfig,
    process="mixup_core.theory.linear_views:start",
    metrics={
        "excess/measured": Metric(label="excess of the mixed loss over its floor", unit="nats"),
        "excess/exact": Metric(label="excess, closed form", unit="nats", least=0.0),
        "gap/minimum": Metric(label="least excess of equal correlations", unit="nats", least=0.0),
        "gap/sampled": Metric(label="least excess over drawn weights", unit="nats", least=0.0),
        "gap/at_scale": Metric(label="excess at the correlation C", unit="nats", least=0.0),
        "gap/best_scale": Metric(label="correlation of the least excess", least=0.0),
        "gradient/second": Metric(
            label="pull on the second feature, sampled", is_lower_better=False
        ),
        "gradient/second_exact": Metric(label="pull on the second feature", is_lower_better=False),
        "gradient/second_times_k2": Metric(
            label="pull on the second feature times k^2", is_lower_better=False
        ),
        "gradient/difference": Metric(label="pull on first minus second, sampled"),
        "gradient/difference_exact": Metric(label="pull on first minus second"),
        "gradient/bound": Metric(label="shape of the bound of the proposition"),
        "scale": Metric(label="scale (gamma, C or c)", least=0.0),
    },
    headline=("excess/measured", "gap/minimum", "gradient/second"),
    beside=("*/exact", "*/sampled", "*/second_exact"),
    curves=(("gap/at_scale", "gradient/second_exact", "excess/exact"),),
    objectives=("excess/measured", "gap/minimum"),
    axis=Axis(label="scale of the model", unit="doubling", scale="log", metric="scale"),
    unsearchable=("classes", "quantity"),
    measures=measures,
    setting=setting,
    population=lambda config: (type(config.quantity).__name__, config.classes),
)
"""Lemma 3.2 and propositions 3.3 to 3.5 as computations along a scale."""
