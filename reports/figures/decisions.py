"""Decision maps: the class that each arm predicts at each point of a plane of two inputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from mixup_core.problem import Config
from reports.figures.canvas import Figure, finished, panelled, spell_counts, styled
from reports.numbers.runs import counted_runs
from reports.numbers.spelling import spell_csv
from reports.tables.table import Table
from sweeps.state.results import RunResult

_MOST_ARMS = 6
"""Largest number of panels; with more arms the figure is left out."""

_CELLS = 121
"""Number of cells of the map along each axis."""

_CLASSES = "#0072B2", "#D55E00"
"""Colours of classes 0 and 1. The background of the map uses pale versions of them."""

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionPlane:
    """Plane of a problem's two inputs; a decision map shows the class predicted at each point.

    Runs of the problem record the boundary between the classes in this plane as metrics.
    """

    head: str
    """First part of the names of the metrics that record the boundary. For `boundary`, the metric
    `boundary/0.5` is the horizontal position of the boundary at the height 0.5; class 1 is
    predicted to its left.
    """
    extent: float
    """The map reaches from minus this value to this value in the horizontal direction."""
    data: Callable[[Any], tuple[Array, Array]]
    """Function from a configuration to its data: points (n, 2), horizontal coordinate first, and
    their classes (n,).
    """


def _moons() -> DecisionPlane:
    from mixup_core.theory.moons import EXTENT, draw_moons

    return DecisionPlane(head="boundary/at", extent=EXTENT, data=draw_moons)


PLANES: dict[str, Callable[[], DecisionPlane]] = {"moons": _moons}
"""Function that returns the `DecisionPlane` of a problem, by the name of the problem."""


def draw_decisions(arranged: Mapping[str, Mapping[int, RunResult]], table: Table) -> Figure | None:
    """Return a figure with one decision map per arm at the end of training.

    The result is None if no run stored the boundary between the classes, or if more than six arms
    have one.
    """
    if table.problem.name not in PLANES:
        return None
    plane = PLANES[table.problem.name]()
    arms = {
        row.arm: found
        for row in table.printed
        if (found := _boundaries(counted_runs(arranged[row.arm]), plane))
    }
    if not arms or len(arms) > _MOST_ARMS:
        return None
    heights = sorted(next(iter(next(iter(arms.values())).values())))
    across = np.linspace(-plane.extent, plane.extent, _CELLS)
    up = np.linspace(heights[0], heights[-1], _CELLS)
    seed = next(iter(next(iter(arms.values()))))
    with styled():
        canvas, panels = panelled(len(arms), height=2.7)
        colours = mpl.colors.LinearSegmentedColormap.from_list(
            "classes", [_faint(_CLASSES[0]), "white", _faint(_CLASSES[1])]
        )
        norm = mpl.colors.Normalize(0, 100)
        for axes, (arm, boundaries) in zip(panels, arms.items(), strict=True):
            shares = 100 * class_shares(list(boundaries.values()), across, up)
            axes.pcolormesh(
                across, up, shares, norm=norm, cmap=colours, shading="nearest", rasterized=True
            )
            shown = next((s for s in (seed, *boundaries) if s in boundaries), seed)
            _draw_points(axes, plane, arranged[arm][shown].run.config)
            axes.set(title=table.title_of(arm), xlabel="x_1", ylabel="x_2", aspect="equal")
            axes.set_xlim(across[0], across[-1])
            axes.set_ylim(up[0], up[-1])
            axes.grid(visible=False)
        bar = canvas.colorbar(mpl.cm.ScalarMappable(norm, colours), ax=list(panels), shrink=0.8)
        bar.set_label("seeds that predict class 1, %")
        return finished(
            canvas,
            name="decisions",
            title="Decision maps",
            caption="Share of the seeds whose network predicts class 1 (red) instead of class 0 "
            f"(blue) at each point, at the end of training ({spell_counts(table)}). Dots: the "
            f"training points of seed {seed}. The maps are drawn from one stored number for each "
            f"of {len(heights)} values of x_2: the position at which a single boundary would give "
            "each class the same part of the row as the network does. Positions are interpolated "
            "linearly between rows. If a network's boundary crosses a row several times, the map "
            f"shows one crossing. {table.selection.brief}",
            numbers=spell_csv(
                [
                    {"arm": arm, "seed": of_seed, "x_2": height, "boundary": place}
                    for arm, boundaries in arms.items()
                    for of_seed, boundary in boundaries.items()
                    for height, place in boundary.items()
                ]
            ),
        )


def class_shares(boundaries: Sequence[Mapping[float, float]], across: Array, up: Array) -> Array:
    """Return, for each cell of a decision map, the fraction of runs that predict class 1 there.

    The inputs are x_1 (horizontal) and x_2 (vertical). A run predicts class 1 to the left of its
    boundary. Values are in [0, 1]; the shape is (up, across).
    """
    places = [
        np.interp(up, sorted(boundary), [boundary[height] for height in sorted(boundary)])
        for boundary in boundaries
    ]
    shares: Array = np.mean([across < place[:, None] for place in places], axis=0)
    return shares


def _boundaries(
    results: Mapping[int, RunResult], plane: DecisionPlane
) -> dict[int, dict[float, float]]:
    """Return the final boundary of each seed, as position by height; empty if any seed has none."""
    head = f"{plane.head}/"
    found = {
        seed: {
            float(name.removeprefix(head)): value
            for name, value in result.records[-1].metrics.items()
            if name.startswith(head)
        }
        for seed, result in results.items()
    }
    return found if all(found.values()) else {}


def _draw_points(axes: Axes, plane: DecisionPlane, config: Config) -> None:
    points, labels = plane.data(config)
    for label, colour in enumerate(_CLASSES):
        own = points[labels == label]
        axes.scatter(own[:, 0], own[:, 1], s=5, color=colour, linewidth=0)


def _faint(colour: str) -> str:
    return mpl.colors.to_hex([0.45 + 0.55 * part for part in mpl.colors.to_rgb(colour)])
