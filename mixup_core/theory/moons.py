"""MOONS: two moons moved apart, where mixup bends the decision boundary of a small network.

The data are two half circles with noise, one per class. They are moved so that the classes lie on
either side of the line x_1 = 0, at least `separation` away from it.

Source: Chidambaram et al. 2022, arXiv:2110.07647, theorem 3.2 and its figure. In the authors'
script, gradients add up over the steps, but only for mixup; in this module each step starts from
zero gradients. The condition of the theorem is that among the mixed points near a training point,
the label weight of its own class is the largest. A run can compute which class has the largest
weight at each point, and compare it with the network's prediction.
"""

# Tests freeze the order and number of the random draws in this file: a change changes results.

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixup_core.arrays import Floats
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, NonNegative, Positive, Range
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Metric, Seed, Series
from mixup_core.rules import require
from mixup_core.seeding import stream
from mixup_core.theory.array_process import ArrayProcess, Arrays
from mixup_core.theory.local_optimum import local_weights
from mixup_core.theory.relu_network import MixedSteps, ReluNetwork
from mixup_core.theory.synthetic import synthetic_problem


def distances_to_segments(points: Floats, starts: Floats, ends: Floats) -> Floats:
    """Return the distance from each point to the nearest line segment: (points,)."""
    along = ends - starts
    lengths = np.maximum((along**2).sum(axis=1), np.finfo(float).tiny)
    from_start = points[:, None] - starts
    shares = np.clip((from_start * along).sum(axis=2) / lengths, 0, 1)
    nearest: Floats = np.linalg.norm(from_start - shares[..., None] * along, axis=2).min(axis=1)
    return nearest


EXTENT = 2.0
"""Half the side of the square [-EXTENT, EXTENT]^2 in which the decision boundary is computed."""

GRID = 25
"""Number of grid nodes along each axis at which `Optimum` computes the optimal class."""

ROWS = tuple(row / 5 for row in range(-8, 9))
"""Values of x_2 at which the position of the boundary is recorded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MoonsConfig(Checked):
    """Configuration of a network trained on two moons, with one law of the mixing weight lam."""

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
    """Law whose optimal class (see `Optimum`) is compared with the network's at each point; None:
    no comparison.
    """
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
        require(
            self.points % 2 == 0, "points must be even: each class has half of them", self, "points"
        )

    @property
    def network(self) -> ReluNetwork:
        """The network that a run trains: 2 inputs, `hidden` hidden ReLU units and 2 classes."""
        return ReluNetwork(inputs=2, hidden=self.hidden, classes=2)


def draw_moons(config: MoonsConfig) -> tuple[Floats, NDArray[Any]]:
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
    noise = stream(config.seed, "training points").normal(0, config.noise, (config.points, 2))
    first, second = (np.concatenate([upper, lower]) + noise).T
    sides = np.repeat([-1.0, 1.0], half)
    height = second - 0.3 * sides
    height = -sides * (np.abs(height - height.mean()) + config.separation)
    return np.column_stack([height, first - 0.5]), np.repeat([0, 1], half)


def largest_margin(points: Floats, labels: NDArray[Any]) -> float:
    """Return the largest margin that a boundary can have: half the gap between the classes.

    A decision boundary that separates the classes crosses the segment between the two nearest
    points of different classes, so one of them is at most this far from the boundary.
    """
    ours, theirs = points[labels == 0], points[labels == 1]
    return float(np.linalg.norm(ours[:, None] - theirs, axis=2).min()) / 2


def decision_map(config: MoonsConfig, weights: Floats) -> tuple[Floats, Floats]:
    """Evaluate a network on a grid in the square [-2, 2]^2, to find its decision boundary."""
    nodes = np.linspace(-EXTENT, EXTENT, config.resolution + 1)
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    logits = config.network.logits(weights, grid)
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


def boundary_by_row(config: MoonsConfig, weights: Floats) -> dict[float, float]:
    """Return the decision boundary's position x_1 in each row of constant x_2, as {x_2: x_1}.

    The rows are x_2 = -1.6, -1.4, ..., 1.6 and run from x_1 = -2 to 2. If the boundary crosses a
    row once, with class 1 on the left, the position is the crossing, to 0.01. In general, it is -2
    plus the total length of the parts that the network assigns to class 1.
    """
    nodes = np.linspace(-EXTENT, EXTENT, 201)
    grid = np.stack(np.meshgrid(ROWS, nodes, indexing="ij")[::-1], axis=-1).reshape(-1, 2)
    logits = config.network.logits(weights, grid).reshape(len(ROWS), len(nodes), 2)
    shares = (logits[..., 1] > logits[..., 0]).mean(axis=1)
    return dict(zip(ROWS, (EXTENT * (2 * shares - 1)).tolist(), strict=True))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Optimum:
    """The class that minimises the mixed loss, at training points and at grid nodes.

    This optimal class of a position has the largest label weight among the mixed points nearby (see
    `local_weights`).
    """

    at_points: NDArray[Any]
    """Optimal class at each training point: (points,)."""
    places: Floats
    """Grid nodes with mixed points within the radius `reach`: (places, 2)."""
    at_places: NDArray[Any]
    """Optimal class at each of `places`: (places,)."""

    @classmethod
    def of(cls, config: MoonsConfig, points: Floats, labels: NDArray[Any], law: Law) -> "Optimum":
        """Compute the classes with the lowest mixed loss under a law, at points and grid nodes."""
        nodes = np.linspace(-EXTENT, EXTENT, GRID)
        grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
        own = local_weights(points, points, labels, law, config.reach)
        around = local_weights(grid, points, labels, law, config.reach)
        is_met = around.sum(axis=1) > 0
        return cls(
            at_points=own.argmax(axis=1),
            places=grid[is_met],
            at_places=around[is_met].argmax(axis=1),
        )

    def measured(
        self, config: MoonsConfig, weights: Floats, points: Floats, labels: NDArray[Any]
    ) -> dict[str, float]:
        """Compare the optimal classes with the labels and with a network; return metrics by name.

        The optimal class of a position is the class that minimises the mixed loss there.
        """
        at_points = config.network.logits(weights, points).argmax(axis=1)
        at_places = config.network.logits(weights, self.places).argmax(axis=1)
        return {
            "optimum/own": float((self.at_points == labels).mean()),
            "optimum/agreement_points": float((self.at_points == at_points).mean()),
            "optimum/agreement": float((self.at_places == at_places).mean()),
        }


def start(config: MoonsConfig) -> ArrayProcess:
    inputs, labels = draw_moons(config)
    steps = MixedSteps(
        network=config.network,
        inputs=inputs,
        targets=np.eye(2)[labels],
        law=config.law,
        num=config.steps_per_epoch,
        lr=config.lr,
    )
    largest, law = largest_margin(inputs, labels), config.compared
    optimum = None if law is None else Optimum.of(config, inputs, labels, law)

    def advance(epoch: int, state: Arrays) -> Mapping[str, float]:
        loss = steps.take(state, stream(config.seed, "mixing", epoch))
        return {
            "step": float((epoch + 1) * steps.num),
            "train/loss": loss,
            **_measured(config, state["weights"], inputs, labels, largest),
            **(optimum.measured(config, state["weights"], inputs, labels) if optimum else {}),
        }

    weights = steps.network.initial(stream(config.seed, "initial weights"))
    return ArrayProcess(epochs=config.epochs, state=weights, advance=advance)


def _measured(
    config: MoonsConfig, weights: Floats, inputs: Floats, labels: NDArray[Any], largest: float
) -> dict[str, float]:
    """Return training error, margins (negative for wrong points) and shape of the boundary."""
    wrong = config.network.logits(weights, inputs).argmax(axis=1) != labels
    rows = boundary_by_row(config, weights)
    metrics = {"train/error": float(wrong.mean()), "margin/bound": largest}
    metrics |= {f"boundary/at/{row:g}": place for row, place in rows.items()}
    starts, ends = boundary(*decision_map(config, weights))
    if not len(starts):  # the network predicts one class everywhere
        return metrics
    margins = np.where(wrong, -1, 1) * distances_to_segments(inputs, starts, ends)
    lengths = np.linalg.norm(ends - starts, axis=1)
    middles = (starts[:, 0] + ends[:, 0]) / 2
    centre = float((lengths * middles).sum() / lengths.sum())
    spread = (lengths * (middles - centre) ** 2).sum() / lengths.sum()
    return metrics | {
        "margin/least": float(margins.min()),
        "margin/mean": float(margins.mean()),
        "margin/lost": largest - float(margins.min()),
        "boundary/spread": math.sqrt(spread),
        "boundary/length": float(lengths.sum()) / (2 * EXTENT),
    }


MOONS = synthetic_problem(
    MoonsConfig,
    title="two moons moved apart (Chidambaram et al. 2022, theorem 3.2)",
    metrics={
        "margin/least": Metric(label="least margin", is_lower_better=False),
        "margin/mean": Metric(label="mean margin", is_lower_better=False),
        "margin/lost": Metric(label="largest possible margin minus least margin", least=0.0),
        "margin/bound": Metric(label="largest possible margin", is_lower_better=False),
        "boundary/spread": Metric(label="spread of the boundary around the line", least=0.0),
        "boundary/length": Metric(label="length of the boundary relative to the line", least=0.0),
        "optimum/own": Metric(
            label="points whose class has the largest label weight nearby",
            unit="%",
            is_lower_better=False,
        ),
        "optimum/agreement": Metric(
            label="grid points where the network predicts the local optimum",
            unit="%",
            is_lower_better=False,
        ),
        "optimum/agreement_points": Metric(
            label="training points where the network predicts the local optimum",
            unit="%",
            is_lower_better=False,
        ),
        "train/error": Metric(label="training error", unit="%"),
        "train/loss": Metric(label="mixed training loss", unit="nats", least=0.0),
        "step": Metric(label="training steps", least=0.0),
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
    unsearchable=("points", "noise", "separation"),
    population=lambda config: (config.points, config.noise, config.separation),
    beside=("margin/mean", "boundary/spread", "train/error"),
    curves=(("margin/mean",), ("boundary/spread",)),
    series=(
        Series(
            head="boundary/at",
            metric=Metric(label="decision boundary, x_1"),
            along="x_2, along the line between the classes",
        ),
    ),
    setting=lambda config, _: (
        f"two moons, {config.points} points, {config.separation:g} from the line between"
    ),
    work=lambda config: int(config.steps_per_epoch),
    work_unit="steps",
)
"""Problem of two moons: margins to the decision boundary, beside the largest possible margin."""
