"""Ranks: matrix of the differences between arms, which are ordered by mean, as a figure."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Canvas

from mixup_core.problem import Metric
from reports.figures.canvas import Figure, finished, styled
from reports.numbers.comparison import Comparison, compare
from reports.numbers.families import holm
from reports.numbers.runs import measures_of, values_of
from reports.numbers.spelling import spell_csv, spell_heading, spell_number
from reports.numbers.summary import summarise
from reports.tables.table import Table
from sweeps.state.results import RunResult
from sweeps.study.study import Study

LEAST_ARMS = 6
"""Smallest number of arms for this figure; for fewer, the table of differences is enough."""
MOST_ARMS = 24
LEVEL = 0.05
_BETTER, _WORSE, _OPEN = "#0072B2", "#D55E00", "#f2f2f2"


def draw_ranks(
    study: Study, arranged: Mapping[str, Mapping[int, RunResult]], table: Table
) -> Figure | None:
    """Return the figure of the mean paired difference in headline metric between every two arms.

    Rows and columns are the arms, in the order of their means; significant differences are
    coloured. The result is None if there are fewer than 6 or more than 24 arms, or if not all arms
    have the same seeds.
    """
    found = values_of(arranged, table.metric, table.readout)
    values = {row.arm: found[row.arm] for row in table.printed if len(found[row.arm]) > 1}
    is_paired = len({tuple(sorted(by_seed)) for by_seed in values.values()}) == 1
    if not is_paired or not LEAST_ARMS <= len(values) <= MOST_ARMS:
        return None
    shown = table.shown
    sign = 1 if shown.is_lower_better else -1
    means = {arm: summarise(list(by_seed.values())).mean for arm, by_seed in values.items()}
    arms = sorted(means, key=lambda arm: sign * means[arm])
    pairs = list(combinations(range(len(arms)), 2))
    of = measures_of(study, table.metric, table.readout)
    named = [(arms[j], arms[i]) for i, j in pairs]
    compared = [compare(values[a], values[b], of[a], of[b]) for a, b in named]
    # A difference without spread has no p value; equal arms never differ significantly.
    adjusted = holm([1.0 if c.p is None else c.p for c in compared])
    with styled():
        side = 1.9 + 0.36 * len(arms)
        canvas = Canvas(figsize=(side + 0.6, side), layout="constrained")
        axes = canvas.subplots()
        shades = [[_OPEN] * len(arms) for _ in arms]
        for (i, j), comparison, p in zip(pairs, compared, adjusted, strict=True):
            is_apart = p <= LEVEL
            if is_apart:
                shades[i][j], shades[j][i] = _BETTER, _WORSE
            for row, column, difference in (
                (i, j, -comparison.difference),
                (j, i, comparison.difference),
            ):
                said = spell_number(difference * shown.scale, shown.digits)
                place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6}
                axes.text(column, row, said, color="white" if is_apart else "#333333", **place)
        # `imshow` would enlarge the image in hundreds of megabytes.
        places = range(len(arms))
        axes.pcolormesh(places, places, [[to_rgb(shade) for shade in row] for row in shades])
        axes.invert_yaxis()
        axes.grid(visible=False)
        labels = [_label(arm, means[arm], shown) for arm in arms]
        axes.set_yticks(places, labels)
        axes.set_xticks(places, arms, rotation=60, ha="right")
        axes.set_xlabel(spell_heading("row minus column at the same seed", shown))
        told_apart = sum(p <= LEVEL for p in adjusted)
        return finished(
            canvas,
            name="ranks",
            title=f"Significant differences of the final {shown.label} between arms",
            caption=f"Mean paired difference of the {shown.label} between the arm of the row and "
            "that of the column. Arms are in the order of their means, the best first (read-out: "
            f"{table.readout}). Blue: the row is significantly better. Red: it is significantly "
            f"worse. Significant: Holm-adjusted p over all {len(pairs)} pairs at most {LEVEL:g}, "
            f"which {told_apart} of {len(pairs)} pairs reach. {table.selection.brief}",
            numbers=spell_csv(
                [
                    _record(arms[i], arms[j], comparison, p)
                    for (i, j), comparison, p in zip(pairs, compared, adjusted, strict=True)
                ]
            ),
        )


def _label(arm: str, mean: float, shown: Metric) -> str:
    return f"{arm}  {spell_number(mean * shown.scale, shown.digits)}"


def _record(better: str, worse: str, comparison: Comparison, p: float) -> dict[str, Any]:
    return {
        "better": better,
        "worse": worse,
        "n": comparison.n,
        "worse_minus_better": comparison.difference,
        "ci_low": comparison.ci_low,
        "ci_high": comparison.ci_high,
        "p": comparison.p,
        "p_holm": p,
    }
