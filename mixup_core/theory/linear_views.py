"""LINEAR_VIEWS: linear models on two features per class, and what each law makes them learn.

The data (Chidambaram et al. 2023, arXiv:2210.13512, definition 3.1): each class y has two unit
features v_{y,1}, v_{y,2}; all features are orthogonal. A point of class y is

    x = beta v_{y,1} + (1 - beta) v_{y,2},   beta ~ U[0.1, 0.9],   y uniform over k classes,

and a linear model has the logits g_y(x) = <w_y, x>. Only its correlations <w_y, v_{s,l}> matter, so
the features are taken to be the canonical basis of R^{2k}, without loss of generality.
"""

# Tests freeze the order and number of the random draws in this file: a change changes results.

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, assert_never

import numpy as np

from mixup_core.config.checked import Checked
from mixup_core.config.limits import NonNegative, Positive, Range
from mixup_core.contracts import weights_of
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Metric, Seed
from mixup_core.seeding import stream
from mixup_core.theory.array_process import ArrayProcess
from mixup_core.theory.linear_correlations import (
    BETA_RANGE,
    equal_excess,
    equal_gap,
    gradient_correlations,
    has_root,
    least_gap,
    pair_excess,
    sampled_correlations,
)
from mixup_core.theory.synthetic import synthetic_problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Excess(Checked):
    """Quantity to compute: how far a model's mixed loss is above its infimum, as the weights grow.

    From record to record, the weights of a fixed linear model are multiplied by a larger scale.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, lemma 3.2.
    """

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap(Checked):
    """Quantity to compute: how close the mixed loss of a family of models comes to its infimum.

    In each model, all weights have one correlation C with the features of their class.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, proposition 3.3.
    """

    tag: ClassVar = "gap"

    draws: Annotated[int, Range(2, 1_000_000)] = 4000
    """Number of values of lam drawn from the law, to estimate the smallest excess by sampling."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gradients(Checked):
    """Quantity to compute: the mixed loss's gradient along a class's second, unlearned feature.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, propositions 3.4 and 3.5.
    """

    tag: ClassVar = "gradients"

    draws: Annotated[int, Range(2, 10_000_000)] = 400_000
    """Number of pairs drawn for the sampled value."""


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
    """Scale at the first record. The scale is the factor gamma of the model for `excess`, the
    correlation C for `gap`, and c in delta = c log k for `gradients`.
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


def start(config: LinearViewsConfig) -> ArrayProcess:
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
    if model.is_equal:
        exact = equal_excess(gamma * model.first, config.law, config.classes, config.nodes)
        return {"excess/measured": mean, "excess/exact": exact}
    return {"excess/measured": mean}


def _gap(config: LinearViewsConfig, gap: Gap, correlation: float) -> dict[str, float]:
    nodes = config.law.nodes(config.nodes)
    exact, best = least_gap(nodes, config.classes)
    drawn = weights_of(config.law, gap.draws, stream(config.seed, "mixing"))
    measured = {
        "gap/minimum": exact,
        "gap/sampled": least_gap(drawn, config.classes)[0],
        "gap/at_scale": float(equal_gap(correlation, nodes, config.classes).mean()),
    }
    return measured | ({"gap/best_scale": best} if has_root(nodes) else {})


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


def lacks(config: LinearViewsConfig, metric: str, records: int) -> str | None:
    """Return None if a run measures a metric, else how to measure it: `set quantity to gap`."""
    del records
    heads: dict[str, type[Excess | Gap | Gradients]] = {
        "excess": Excess, "gap": Gap, "gradient": Gradients
    }  # fmt: skip
    kind = heads.get(metric.partition("/")[0])
    if kind is not None and not isinstance(config.quantity, kind):
        return f"set quantity to {kind.tag}"
    if metric == "excess/exact" and isinstance(config.quantity, Excess):
        return None if config.quantity.is_equal else "set first equal to second and first_class: 1"
    if metric == "gap/best_scale" and not has_root(config.law.nodes(config.nodes)):
        return "under this law, the gap falls without end; set another law"
    return None


LINEAR_VIEWS = synthetic_problem(
    LinearViewsConfig,
    title="linear models on two features per class (Chidambaram et al. 2023, section 3)",
    metrics={
        "excess/measured": Metric(
            label="excess of the mixed loss over its lower bound", unit="nats"
        ),
        "excess/exact": Metric(
            label="excess of the mixed loss, closed form", unit="nats", least=0.0
        ),
        "gap/minimum": Metric(
            label="smallest excess with equal correlations", unit="nats", least=0.0
        ),
        "gap/sampled": Metric(label="smallest excess over drawn weights", unit="nats", least=0.0),
        "gap/at_scale": Metric(label="excess at correlation C", unit="nats", least=0.0),
        "gap/best_scale": Metric(label="correlation C at the smallest excess", least=0.0),
        "gradient/second": Metric(
            label="negative gradient along the second feature, sampled", is_lower_better=False
        ),
        "gradient/second_exact": Metric(
            label="negative gradient along the second feature", is_lower_better=False
        ),
        "gradient/second_times_k2": Metric(
            label="negative gradient along the second feature times k^2", is_lower_better=False
        ),
        "gradient/difference": Metric(
            label="negative gradient along first minus second feature, sampled"
        ),
        "gradient/difference_exact": Metric(
            label="negative gradient along first minus second feature"
        ),
        "gradient/bound": Metric(label="bound of the proposition, up to a constant"),
        "scale": Metric(label="scale (gamma, C or c)", least=0.0),
    },
    headline=("excess/measured", "gap/minimum", "gradient/second"),
    axis=Axis(label="scale of the model", unit="doubling", scale="log", metric="scale"),
    lacks=lacks,
    objectives=("excess/measured", "gap/minimum"),
    unsearchable=("classes", "quantity"),
    population=lambda config: (type(config.quantity).__name__, config.classes),
    beside=("*/exact", "*/sampled", "*/second_exact"),
    curves=(("gap/at_scale", "gradient/second_exact", "excess/exact"),),
    setting=lambda config, _: f"two features of each of {config.classes} classes, a linear model",
)
"""Problem of linear models on two features per class (arXiv:2210.13512, section 3)."""
