"""Predictions: decision maps of arms, and reliability diagrams."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from mixup_core.theory.moons import EXTENT, MoonsConfig, draw_moons
from reports.figures.canvas import (
    PANEL_INCHES,
    Figure,
    Styles,
    finished,
    legend,
    panelled,
    spell_counts,
    styled,
)
from reports.numbers.calibration import NUM_BINS, Reliability
from reports.numbers.predicted import Predicted, PredictedArm
from reports.numbers.runs import Arranged, counted_runs
from reports.numbers.spelling import spell_csv
from reports.tables.table import Table
from sweeps.state.results import RunResult

_MOST_MAPS = 6

_CELLS = 121

_CLASSES = "#0072B2", "#D55E00"
"""Colours of classes 0 and 1. The background of the map uses pale versions of them."""

Array = NDArray[Any]


_BOUNDARY = "boundary/at/"
"""First part of the names of the metrics that record the boundary between the classes of `moons`.
The metric `boundary/at/0.5` is the horizontal position of the boundary at the height 0.5; class 1
is predicted to its left.
"""


def draw_decisions(arranged: Arranged, table: Table) -> Figure | None:
    """Return a figure with one decision map per arm of `moons` at the end of training."""
    if table.problem.name != "moons":
        return None
    arms = {
        row.arm: found
        for row in table.printed
        if (found := _boundaries(counted_runs(arranged[row.arm])))
    }
    if not arms or len(arms) > _MOST_MAPS:
        return None
    heights = sorted(next(iter(next(iter(arms.values())).values())))
    across = np.linspace(-EXTENT, EXTENT, _CELLS)
    up = np.linspace(heights[0], heights[-1], _CELLS)
    seed = next(iter(next(iter(arms.values()))))
    lack = any(seed not in boundaries for boundaries in arms.values())
    others = " (in a panel without it, of the arm's first seed)" if lack else ""
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
            shown = seed if seed in boundaries else next(iter(boundaries))
            config = arranged[arm][shown].run.config
            assert isinstance(config, MoonsConfig)
            points, labels = draw_moons(config)
            for label, colour in enumerate(_CLASSES):
                own = points[labels == label]
                axes.scatter(own[:, 0], own[:, 1], s=5, color=colour, linewidth=0)
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
            f"training points of seed {seed}{others}. The maps are drawn from one stored number "
            f"for each of {len(heights)} values of x_2: the position at which a single boundary "
            "would give each class the same part of the row as the network does. Positions are "
            "interpolated linearly between rows. If a network's boundary crosses a row several "
            f"times, the map shows one crossing. {table.selection.brief}",
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


def _boundaries(results: Mapping[int, RunResult]) -> dict[int, dict[float, float]]:
    """Return the boundary of each seed, as position by height; empty if any seed has none."""
    found = {
        seed: {
            float(name.removeprefix(_BOUNDARY)): value
            for name, value in result.records[-1].metrics.items()
            if name.startswith(_BOUNDARY)
        }
        for seed, result in results.items()
    }
    return found if all(found.values()) else {}


def _faint(colour: str) -> str:
    return mpl.colors.to_hex([0.45 + 0.55 * part for part in mpl.colors.to_rgb(colour)])


_MOST_ARMS = 8
_FEWEST_IMAGES = 10
"""A bin with fewer images is not drawn, because its accuracy is too noisy."""


def draw_reliability(predicted: Predicted, styles: Styles) -> Figure | None:
    """Return a figure of accuracy against confidence by arm, also after temperature scaling."""
    if not predicted.arms:
        return None
    records = [
        record
        for arm, of_arm in predicted.arms.items()
        for kind in ("raw", "scaled")
        for record in _records(arm, kind, of_arm)
    ]
    kinds = [kind for kind in ("raw", "scaled") if any(r["shown"] == kind for r in records)]
    shown = list(predicted.arms)[:_MOST_ARMS]
    with styled():
        canvas = Canvas(figsize=(PANEL_INCHES * max(1.3, len(kinds)), 3.8), layout="constrained")
        drawn = canvas.subplots(
            2, len(kinds), squeeze=False, sharex=True, height_ratios=(3, 1), sharey="row"
        )
        for column, kind in enumerate(kinds):
            above, below = drawn[0][column], drawn[1][column]
            above.plot([0, 100], [0, 100], color="#333333", linewidth=0.8)
            for arm in shown:
                own = [r for r in records if r["arm"] == arm and r["shown"] == kind]
                full = [r for r in own if r["images"] >= _FEWEST_IMAGES * r["n"]]
                colour, dashes = styles[arm]
                above.plot(
                    [100 * r["confidence"] for r in full],
                    [100 * r["accuracy"] for r in full],
                    color=colour, linestyle=dashes, marker="o", markersize=3,
                    label=predicted.arms[arm].title,
                )  # fmt: skip
                below.plot(
                    [50 * (r["low"] + r["high"]) for r in own],
                    [100 * r["share"] for r in own],
                    color=colour, linestyle=dashes, drawstyle="steps-mid",
                )  # fmt: skip
            above.set_title("unscaled" if kind == "raw" else "after temperature scaling")
            below.set_xlabel("confidence, %")
            below.set_yscale("symlog", linthresh=1)
        drawn[0][0].set_ylabel("accuracy, %")
        drawn[1][0].set_ylabel("images, %")
        legend(canvas, drawn[0][0])
        left_out = len(predicted.arms) - len(shown)
        return finished(
            canvas,
            name="reliability",
            title="Reliability diagram",
            caption="Accuracy on the test images by confidence in the predicted class, in "
            f"{NUM_BINS} bins of equal width, from the {predicted.counts} ({predicted.weights}). "
            "The images of all seeds of an arm are pooled. On the diagonal, accuracy equals "
            "confidence. Lower panels: share of the images in each bin. The curves leave out bins "
            f"with fewer than {_FEWEST_IMAGES} images per seed."
            + (f" {left_out} more arms are in the CSV file." if left_out else ""),
            numbers=spell_csv(records),
        )


def _records(arm: str, kind: str, of_arm: PredictedArm) -> list[dict[str, Any]]:
    found = [run.raw if kind == "raw" else run.scaled for run in of_arm.runs.values()]
    parts = [part for part in found if part is not None]
    if not parts:
        return []
    count, confidence, correct = (_summed(parts, n) for n in ("count", "confidence", "correct"))
    # Frozen: columns of `figures/reliability.csv`, which scripts read by name;
    # tests/reports/figures/test_predictions.py fails.
    return [
        {
            "arm": arm,
            "shown": kind,
            "n": len(parts),
            "low": place / NUM_BINS,
            "high": (place + 1) / NUM_BINS,
            "images": int(count[place]),
            "share": float(count[place] / count.sum()),
            "confidence": float(confidence[place] / count[place]),
            "accuracy": float(correct[place] / count[place]),
        }
        for place in range(NUM_BINS)
        if count[place]
    ]


def _summed(parts: list[Reliability], name: str) -> NDArray[np.float64]:
    total: NDArray[np.float64] = sum(
        (getattr(part, name) for part in parts), start=np.zeros(NUM_BINS)
    )
    return total
