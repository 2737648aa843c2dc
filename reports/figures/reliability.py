"""Reliability diagram: accuracy against confidence, and the number of images in each bin."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from reports.figures.canvas import PANEL_INCHES, Figure, finished, legend, styled
from reports.figures.colours import Styles
from reports.numbers.calibration import NUM_BINS, Reliability
from reports.numbers.predicted import Predicted, PredictedArm
from reports.numbers.spelling import spell_csv

_MOST_ARMS = 8
_FEWEST_IMAGES = 10
"""A bin with fewer images is not drawn, because its accuracy is too noisy."""


def draw_reliability(predicted: Predicted, styles: Styles) -> Figure | None:
    """Return a figure of accuracy against confidence by arm, before and after temperature scaling.

    The result is None if no predictions are stored. Only the first eight arms are drawn; the CSV
    has all of them.
    """
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
                    color=colour, linestyle=dashes, marker="o", markersize=3, label=arm,
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
