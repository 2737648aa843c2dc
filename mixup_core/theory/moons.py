"""MOONS: two moons moved apart, where mixup bends the decision boundary of a small network.

The data are two half circles with noise, one per class. They are moved so that the classes lie on
either side of the line x_1 = 0, at least `separation` away from it.

Source: Chidambaram et al. 2022, arXiv:2110.07647, theorem 3.2 and its figure. In the authors'
script, gradients add up over the steps, but only for mixup; in this module each step starts from
zero gradients. The condition of the theorem is that among the mixed points near a training point,
the label weight of its own class is the largest. A run can compute which class has the largest
weight at each point, and compare it with the network's prediction.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from mixup_core.arrays import Floats, Ints
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, NonNegative, Positive, Range
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Seed, Series
from mixup_core.rules import require
from mixup_core.seeding import stream
from mixup_core.theory.relu_network import ReluNetwork, trained
from mixup_core.theory.synthetic import ArrayProcess, Metrics, metric, synthetic_problem

EXTENT = 2.0
"""Half the side of the square [-EXTENT, EXTENT]^2 in which the decision boundary is computed."""
GRID = 25
"""Number of grid nodes along each axis at which `optimum` computes the optimal class."""
ROWS = tuple(row / 5 for row in range(-8, 9))
"""Values of x_2 at which the position of the boundary is recorded."""
_CELLS = 4096
"""Number of cells of [0, 1]; lam is rounded to their edges."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MoonsConfig(Checked):
    """Configuration of a network trained on two moons, with one law of the mixing weight lam."""

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "moons"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam; each step draws one weight for all points."""
    points: Annotated[int, Range(4)] = 300
    """Number of points, even; each step uses all."""
    noise: NonNegative = 0.1
    """Standard deviation of the noise in each coordinate."""
    separation: NonNegative = 0.1
    """Distance by which each class is moved away from the line x_1 = 0."""
    hidden: Count = 500
    """Number of units of the hidden ReLU layer."""
    lr: Positive = 1e-3
    """Learning rate of Adam."""
    compared: Law | None = None
    """Law whose optimal class is compared with the network's at each point; None: none is."""
    reach: Positive = 0.1
    """Radius around a point within which the label weights of mixed points are summed."""
    resolution: Annotated[int, Range(10, 1000)] = 100
    """Number of grid cells along each axis, with which the decision boundary is computed."""
    steps_per_epoch: Count = 100
    """Number of steps between two records."""
    epochs: Count = 10
    """Number of records of a run."""
    seed: Seed = 0
    """Seed of points, weights, partners and lam."""

    def check(self) -> None:
        rule = "points must be even: each class has half of them"
        require(self.points % 2 == 0, rule, self, "points")

    @property
    def network(self) -> ReluNetwork:
        return ReluNetwork(inputs=2, hidden=self.hidden, classes=2)


def draw_moons(config: MoonsConfig) -> tuple[Floats, Ints]:
    """Draw the points, (points, 2), and return them with labels 0 or 1, (points,).

    The first half of the points has the label 0. Points (a, b) of the labels 0 and 1 are drawn on
    the half circles (cos t, sin t) and (1 - cos t, 1/2 - sin t), t evenly spaced over [0, pi], with
    noise. Then b is increased by 0.3 for label 0 and decreased by 0.3 for label 1. With h the
    distance of b from its mean over all points, plus `separation`, the result is (h, a - 1/2) for
    label 0 and (-h, a - 1/2) for label 1.
    """
    half = config.points // 2
    turn = np.linspace(0, np.pi, half)
    upper = np.column_stack([np.cos(turn), np.sin(turn)])
    lower = np.column_stack([1 - np.cos(turn), 0.5 - np.sin(turn)])
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    noise = stream(config.seed, "training points").normal(0, config.noise, (config.points, 2))
    first, second = (np.concatenate([upper, lower]) + noise).T
    sides = np.repeat([-1.0, 1.0], half)
    height = second - 0.3 * sides
    height = -sides * (np.abs(height - height.mean()) + config.separation)
    return np.column_stack([height, first - 0.5]), np.repeat([0, 1], half)


def largest_margin(points: Floats, labels: Ints) -> float:
    """Return half the gap between the classes, the largest margin that a boundary can have."""
    ours, theirs = points[labels == 0], points[labels == 1]
    return float(np.linalg.norm(ours[:, None] - theirs, axis=2).min()) / 2


def decision_map(config: MoonsConfig, weights: Floats) -> tuple[Floats, Floats]:
    """Return the nodes of a grid in the square [-2, 2]^2, and a network's difference of logits."""
    nodes = np.linspace(-EXTENT, EXTENT, config.resolution + 1)
    logits = config.network.logits(weights, _square(nodes))
    return nodes, (logits[:, 1] - logits[:, 0]).reshape(len(nodes), len(nodes))


def boundary(nodes: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the zeros of a function on a grid as line segments: starts, ends, (segments, 2) each.

    The method is marching squares: the zero on each edge of a cell is found by linear
    interpolation, and zeros are joined within cells. If all four edges have a zero (a saddle), the
    sign of the mean of the corners decides which zeros are joined.
    """
    x, y = np.meshgrid(nodes, nodes, indexing="ij")
    corners = np.stack([values[:-1, :-1], values[1:, :-1], values[1:, 1:], values[:-1, 1:]])
    places = np.stack(
        [np.stack([part[:-1, :-1], part[1:, :-1], part[1:, 1:], part[:-1, 1:]]) for part in (x, y)]
    )
    following = np.roll(corners, -1, axis=0)
    crosses = (corners >= 0) != (following >= 0)
    share = np.where(crosses, corners / np.where(crosses, corners - following, 1.0), 0.0)
    zeros = places + share * (np.roll(places, -1, axis=1) - places)
    starts, ends = [], []
    for first, second in ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)):
        joined = crosses[first] & crosses[second]
        if second - first in {1, 3, -3}:
            # Neighbouring edges share a corner. In a saddle, they are joined if the corner and the
            # mean of the corners have different signs.
            corner = corners[second]
            saddle = crosses.all(axis=0)
            joined &= ~saddle | ((corner >= 0) != (corners.mean(axis=0) >= 0))
        else:
            joined &= crosses.sum(axis=0) == 2
        starts.append(zeros[:, first, joined].T)
        ends.append(zeros[:, second, joined].T)
    return np.concatenate(starts), np.concatenate(ends)


def distances_to_segments(points: Floats, starts: Floats, ends: Floats) -> Floats:
    """Return the distance from each point to the nearest line segment: (points,)."""
    along = ends - starts
    lengths = np.maximum((along**2).sum(axis=1), np.finfo(float).tiny)
    from_start = points[:, None] - starts
    shares = np.clip((from_start * along).sum(axis=2) / lengths, 0, 1)
    nearest: Floats = np.linalg.norm(from_start - shares[..., None] * along, axis=2).min(axis=1)
    return nearest


def local_weights(places: Floats, points: Floats, labels: Ints, law: Law, radius: float) -> Floats:
    """Return the mean label weight of each class near given positions: (places, classes).

        W_c(z) = mean over ordered pairs (u, v) of
                 E[lam [y_u = c] + (1 - lam) [y_v = c]; |lam u + (1 - lam) v - z| <= radius]

    E[X; A] means E[X 1(A)]. For each pair, the condition A holds on an interval of lam, so only the
    law's moments over intervals are needed. The classifier of least mixed loss predicts the class
    with the largest weight, here for mixed points within a radius.

    Source: Chidambaram et al. 2022, arXiv:2110.07647: the closed form of the mixup-optimal
    classifier, and the condition of theorem 3.2.
    """
    counts = np.bincount(np.rint(law.nodes(_CELLS) * _CELLS).astype(int), minlength=_CELLS + 1)
    share = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
    lams = np.arange(_CELLS + 1) / _CELLS
    moment = np.concatenate([[0.0], np.cumsum(lams * counts / counts.sum())])
    first, second = (index.ravel() for index in np.indices((len(points), len(points))))
    along = points[first] - points[second]
    squares = (along**2).sum(axis=1)
    safe = np.maximum(squares, np.finfo(float).tiny)
    classes = int(labels.max()) + 1
    weights = np.zeros((len(places), classes))
    for index, place in enumerate(places):
        away = place - points[second]
        middle = np.clip((away * along).sum(axis=1) / safe, -1e9, 1e9)
        spare = radius**2 - ((away - middle[:, None] * along) ** 2).sum(axis=1)
        half = np.sqrt(np.maximum(spare, 0) / safe)
        low = np.ceil(np.clip(middle - half, 0, 1) * _CELLS - 1e-9).astype(int)
        high = np.floor(np.clip(middle + half, 0, 1) * _CELLS + 1e-9).astype(int) + 1
        # An interval outside [0, 1] becomes empty, because both ends are clipped to the same value.
        is_met = (spare >= 0) & (middle - half <= 1) & (middle + half >= 0)
        is_point = (squares == 0) & ((away**2).sum(axis=1) <= radius**2)
        low, high = np.where(is_point, 0, low), np.where(is_point, _CELLS + 1, high)
        counted = (is_met | is_point) & (high > low)
        mass = np.where(counted, share[high] - share[np.minimum(low, high)], 0.0)
        of_first = np.where(counted, moment[high] - moment[np.minimum(low, high)], 0.0)
        weights[index] = np.bincount(labels[first], of_first, classes)
        weights[index] += np.bincount(labels[second], mass - of_first, classes)
    return weights / len(first)


def optimum(config: MoonsConfig, points: Floats, labels: Ints) -> Callable[[Floats], Metrics]:
    """Return a function that compares a network with the classes of least mixed loss.

    The classes are those under the law `config.compared`, at the training points and at the grid
    nodes that have mixed points nearby; see `local_weights`.
    """
    if config.compared is None:
        return lambda _: {}
    grid = _square(np.linspace(-EXTENT, EXTENT, GRID))
    at_points, around = (
        local_weights(places, points, labels, config.compared, config.reach)
        for places in (points, grid)
    )
    is_met = around.sum(axis=1) > 0
    own, places, classes = at_points.argmax(axis=1), grid[is_met], around[is_met].argmax(axis=1)

    def measured(weights: Floats) -> Metrics:
        found, at_places = (
            config.network.logits(weights, each).argmax(axis=1) for each in (points, places)
        )
        return {
            "optimum/own": float((own == labels).mean()),
            "optimum/agreement_points": float((own == found).mean()),
            "optimum/agreement": float((classes == at_places).mean()),
        }

    return measured


def start(config: MoonsConfig) -> ArrayProcess:
    inputs, labels = draw_moons(config)
    largest, compare = largest_margin(inputs, labels), optimum(config, inputs, labels)

    def measured(weights: Floats, loss: float) -> Metrics:
        wrong = config.network.logits(weights, inputs).argmax(axis=1) != labels
        margins = np.where(wrong, -1, 1)
        metrics = {"train/loss": loss, "train/error": float(wrong.mean()), "margin/bound": largest}
        nodes = np.linspace(-EXTENT, EXTENT, 201)
        grid = np.stack(np.meshgrid(ROWS, nodes, indexing="ij")[::-1], axis=-1).reshape(-1, 2)
        logits = config.network.logits(weights, grid).reshape(len(ROWS), len(nodes), 2)
        shares = (logits[..., 1] > logits[..., 0]).mean(axis=1)
        # The crossing if class 1 is on the left; in general, -2 plus the length given to class 1.
        places = (EXTENT * (2 * shares - 1)).tolist()
        metrics |= {f"boundary/at/{row:g}": x for row, x in zip(ROWS, places, strict=True)}
        starts, ends = boundary(*decision_map(config, weights))
        if len(starts):  # else the network predicts one class everywhere
            margins = margins * distances_to_segments(inputs, starts, ends)
            lengths = np.linalg.norm(ends - starts, axis=1)
            middles = (starts[:, 0] + ends[:, 0]) / 2
            centre = float((lengths * middles).sum() / lengths.sum())
            spread = (lengths * (middles - centre) ** 2).sum() / lengths.sum()
            metrics |= {
                "margin/least": float(margins.min()),
                "margin/mean": float(margins.mean()),
                "margin/lost": largest - float(margins.min()),
                "boundary/spread": math.sqrt(spread),
                "boundary/length": float(lengths.sum()) / (2 * EXTENT),
            }
        return {**metrics, **compare(weights)}

    return trained(config, config.network, inputs, labels, measured)


def _square(nodes: Floats) -> Floats:
    return np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)


MOONS = synthetic_problem(
    MoonsConfig,
    start,
    title="two moons moved apart (Chidambaram et al. 2022, theorem 3.2)",
    metrics={
        "margin/least": metric("least margin", higher=True),
        "margin/mean": metric("mean margin", higher=True),
        "margin/lost": metric("largest possible margin minus least margin", least=0.0),
        "margin/bound": metric("largest possible margin", higher=True),
        "boundary/spread": metric("spread of the boundary around the line", least=0.0),
        "boundary/length": metric("length of the boundary relative to the line", least=0.0),
        "optimum/own": metric(
            "points whose class has the largest label weight nearby", "%", higher=True
        ),
        "optimum/agreement": metric(
            "grid points where the network predicts the local optimum", "%", higher=True
        ),
        "optimum/agreement_points": metric(
            "training points where the network predicts the local optimum", "%", higher=True
        ),
        "train/error": metric("training error", "%"),
        "train/loss": metric("mixed training loss", "nats", 0.0),
    },
    headline=("margin/least",),
    axis=Axis(label="training steps", unit="record", metric="step"),
    lacks=lambda config, metric, _: (
        "set compared" if metric.startswith("optimum/") and config.compared is None else None
    ),
    sample_size=lambda config, metric: (
        config.points if metric in {"train/error", "optimum/own"} else None
    ),
    objectives=("margin/lost", "boundary/spread", "train/error"),
    population=lambda config, _: (config.points, config.noise, config.separation),
    beside=("margin/mean", "boundary/spread", "train/error"),
    curves=(("margin/mean",), ("boundary/spread",)),
    series=(
        Series(
            head="boundary/at",
            metric=metric("decision boundary, x_1"),
            along="x_2, along the line between the classes",
        ),
    ),
    setting=lambda config, _: (
        f"two moons, {config.points} points, {config.separation:g} from the line between"
    ),
)
