"""Final values: the headline metric of each run, means, and differences from the baseline."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from mixup_core.problem import Metric
from reports.figures.canvas import (
    PANEL_INCHES,
    Figure,
    finished,
    numbers_of,
    scale_values,
    spell_counts,
    spell_scales,
    styled,
    wrapped,
)
from reports.figures.colours import Styles
from reports.numbers.families import Member
from reports.numbers.runs import measure_of, minus, values_of
from reports.numbers.spelling import spell_csv, spell_heading, upper_first
from reports.numbers.summary import Summary, summarise
from reports.tables.captions import spell_family
from reports.tables.table import Table
from sweeps.state.results import RunResult
from sweeps.study.study import Study


def draw_finals(
    study: Study,
    arranged: Mapping[str, Mapping[int, RunResult]],
    table: Table,
    styles: Styles,
) -> Figure | None:
    """Return the figure of the runs' final values by arm; None if no run is complete."""
    names = {row.arm: name for row, (name, *_) in zip(table.printed, table.cells, strict=True)}
    found = values_of(arranged, table.metric, table.readout)
    finals = {arm: found[arm] for arm in names}
    if not any(finals.values()):
        return None
    compared = {row.arm: row.compared for row in table.printed if row.compared is not None}
    differences = {arm: minus(finals[arm], finals[table.baseline]) for arm in compared}
    shown = table.shown
    means = {
        "value": {
            arm: summarise(
                list(values.values()), measure_of(study, arm, table.metric, table.readout)
            )
            for arm, values in finals.items()
            if values
        },
        "difference": {arm: _mean_of_pairs(member) for arm, member in compared.items()},
    }
    panels = {"value": finals, "difference": differences}
    if not differences:
        del panels["difference"]
    with styled():
        height = 0.9 + 0.42 * len(finals)
        canvas = Canvas(
            figsize=(PANEL_INCHES * max(1.3, len(panels)), height), layout="constrained"
        )
        drawn = canvas.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (what, values) in zip(drawn, panels.items(), strict=True):
            colours = {arm: styles[arm][0] for arm in finals if arm in means[what]}
            _draw_dots(axes, list(finals), values, means[what], shown.scale, colours)
            axes.grid(visible=False, axis="y")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
        labels = ["\n".join(textwrap.wrap(name, 32)) for name in names.values()]
        drawn[0].set_yticks(range(len(finals)), labels)
        drawn[0].set_ylim(len(finals) - 0.4, -0.6)
        drawn[0].set_xlabel(f"final {shown.heading}")
        dots = [shown.scale * value for by_seed in finals.values() for value in by_seed.values()]
        scale_values(drawn[0], shown, dots, across=True)
        if differences:
            drawn[1].axvline(0, color="#333333", linewidth=0.8)
            heading = spell_heading(f"minus {table.baseline} at the same seed", shown)
            drawn[1].set_xlabel(wrapped(heading))
        return finished(
            canvas,
            name="final_values",
            title=f"Final {shown.label}",
            caption=_final_caption(table, shown, has_differences=bool(differences))
            + spell_scales(drawn[:1], across=True),
            numbers=_final_numbers(panels, means),
        )


def _mean_of_pairs(member: Member) -> Summary:
    """Return the mean difference from the baseline, with the interval that the table prints."""
    c = member.comparison
    return Summary(n=c.n, mean=c.difference, sd=c.sd, ci_low=member.low, ci_high=member.high)


def _draw_dots(  # noqa: PLR0913  what is drawn, where and how
    axes: Axes,
    arms: Sequence[str],
    values: Mapping[str, Mapping[int, float]],
    means: Mapping[str, Summary],
    scale: float,
    colours: Mapping[str, str],
) -> None:
    """Draw each arm in its row: a dot per seed, and the mean with its interval."""
    dots = [
        (scale * value, place + 0.17, colours[arm])
        for place, arm in enumerate(arms)
        if arm in means
        for value in values[arm].values()
    ]
    across, heights, shades = zip(*dots, strict=True)
    axes.scatter(across, heights, s=14, c=shades, alpha=0.55, linewidth=0)
    # Draw all intervals at once: 40 separate error bars, of five artists each, take a second.
    drawn = [(place - 0.1, arm, means[arm]) for place, arm in enumerate(arms) if arm in means]
    centres = [(scale * mean.mean, height, colours[arm]) for height, arm, mean in drawn]
    across, heights, shades = zip(*centres, strict=True)
    axes.scatter(across, heights, s=25, c=shades)
    barred = [
        (height, colours[arm], scale * mean.ci_low, scale * mean.ci_high)
        for height, arm, mean in drawn
        if mean.ci_low is not None and mean.ci_high is not None
    ]
    if barred:
        heights, shades, lows, highs = zip(*barred, strict=True)
        axes.hlines(heights, lows, highs, colors=shades, linewidth=1.6)
        axes.scatter((*lows, *highs), heights * 2, s=25, c=shades * 2, marker="|", linewidth=1)


def _final_caption(table: Table, shown: Metric, *, has_differences: bool) -> str:
    paired = (
        f" Right: differences from {table.baseline} at the same seed; the vertical line marks 0. "
        f"{spell_family(table.family)}"
        if has_differences
        else ""
    )
    return (
        f"{upper_first(shown.label)} of each run (small dots), with the mean and its 95 % t "
        f"interval (large dots and bars; {spell_counts(table)}). Read-out of each run: "
        f"{table.readout}.{paired} {table.selection.brief}"
    )


def _final_numbers(
    panels: Mapping[str, Mapping[str, Mapping[int, float]]],
    means: Mapping[str, Mapping[str, Summary]],
) -> str:
    records: list[dict[str, Any]] = []
    for shown, by_arm in panels.items():
        for arm, values in by_arm.items():
            place = {"shown": shown, "arm": arm}
            for seed, value in values.items():
                records.append(place | {"seed": seed, "value": value} | numbers_of(None))
            if arm in means[shown]:
                mean = numbers_of(means[shown][arm])
                records.append(place | {"seed": None, "value": None} | mean)
    return spell_csv(records)
