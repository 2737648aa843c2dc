"""Ensembles: error, NLL, Brier score and calibration error against the number of networks."""

import math
from typing import Any

from reports.figures.canvas import Figure, finished, legend, panelled, styled
from reports.figures.colours import Styles
from reports.numbers.ensembles import sizes_of
from reports.numbers.predicted import Predicted
from reports.numbers.spelling import spell_csv

_MOST_ARMS = 8
_PANELS = (
    ("error", "error, %", 100.0),
    ("nll", "NLL, nats", 1.0),
    ("brier", "Brier score", 1.0),
    ("calibration_error", "calibration error, %", 100.0),
    ("scaled_nll", "NLL after temperature scaling, nats", 1.0),
    ("scaled_calibration_error", "calibration error after temperature scaling, %", 100.0),
)


def draw_ensembles(predicted: Predicted, styles: Styles) -> Figure | None:
    """Return a figure of error, NLL, Brier score and calibration error against ensemble size.

    The size is the number of networks. The result is None if every arm has fewer than three runs.
    Only the first eight arms are drawn; the CSV has all of them.
    """
    arms = {arm: a.sizes for arm, a in predicted.arms.items() if len(a.runs) > 2}
    if not arms:
        return None
    records: list[dict[str, Any]] = [
        {
            "arm": arm, "networks": of_size.size, "ensembles": of_size.num_ensembles,
            "measure": name, "mean": found.mean, "ci_low": found.low, "ci_high": found.high,
            "image_low": found.image_low, "image_high": found.image_high,
        }
        for arm, of_size in sizes_of(arms)
        for name, found in of_size.measures.items()
    ]  # fmt: skip
    known = {record["measure"] for record in records}
    panels = [panel for panel in _PANELS if panel[0] in known]
    shown = list(arms)[:_MOST_ARMS]
    with styled():
        canvas, drawn = panelled(len(panels), height=2.6)
        for axes, (name, label, scale) in zip(drawn, panels, strict=True):
            for arm in shown:
                own = [r for r in records if (r["arm"], r["measure"]) == (arm, name)]
                colour, dashes = styles[arm]
                style: dict[str, Any] = {"color": colour, "linestyle": dashes}
                across = [r["networks"] for r in own]
                axes.plot(across, _scaled(own, "mean", scale), marker="o", markersize=3, label=arm,
                          **style)  # fmt: skip
                axes.fill_between(
                    across, _scaled(own, "ci_low", scale), _scaled(own, "ci_high", scale),
                    color=colour, alpha=0.15, linewidth=0,
                )  # fmt: skip
            axes.set(xlabel="number of networks", ylabel=label, xscale="log")
            ticks = sorted({r["networks"] for r in records})
            axes.set_xticks(ticks, [str(tick) for tick in ticks])
            axes.minorticks_off()
        legend(canvas, drawn[0])
        left_out = len(arms) - len(shown)
        return finished(
            canvas,
            name="ensembles",
            title="Ensembles by number of networks",
            caption=f"Ensembles of networks of one arm by their number of networks, from the "
            f"{predicted.counts} on the test images ({predicted.weights}). An ensemble averages "
            "the predicted probabilities. Lines: means over ensembles. Bands: 95 % jackknife "
            "intervals over seeds, for other networks on the same images."
            + (f" {left_out} more arms are in the CSV file." if left_out else ""),
            numbers=spell_csv(records),
        )


def _scaled(records: list[dict[str, Any]], name: str, scale: float) -> list[float]:
    """Return one column of the records in the drawn unit; NaN, a gap, where a value is missing."""
    return [math.nan if record[name] is None else scale * record[name] for record in records]
