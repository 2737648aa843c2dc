"""Final values: each run and arm at the end of training, and the differences between all arms."""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from mixup_core.problem import Metric
from reports.figures.canvas import (
    PANEL_INCHES,
    Figure,
    Styles,
    finished,
    scale_values,
    spell_counts,
    spell_scales,
    styled,
    wrapped,
)
from reports.numbers.comparison import compare
from reports.numbers.families import Member, holm
from reports.numbers.runs import Arranged, are_paired, measures_of, minus, values_of
from reports.numbers.spelling import spell_csv, spell_heading, spell_number, upper_first
from reports.numbers.summary import Summary, numbers_of, summarise
from reports.tables.captions import spell_family
from reports.tables.table import Table
from sweeps.study.study import Study


def draw_finals(arranged: Arranged, table: Table, styles: Styles) -> Figure | None:
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
            row.arm: row.summaries[table.metric]
            for row in table.printed
            if table.metric in row.summaries
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
            colours = {arm: styles[arm][0] for arm in finals}
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
            heading = spell_heading(
                f"minus {table.title_of(table.baseline)} at the same seed", shown
            )
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
        for value in values.get(arm, {}).values()
    ]
    across, heights, shades = zip(*dots, strict=True)
    axes.scatter(across, heights, s=14, c=shades, alpha=0.55, linewidth=0)
    # Draw all intervals at once: 40 separate error bars, of five artists each, take a second.
    drawn = [(place - 0.1, arm, means[arm]) for place, arm in enumerate(arms) if arm in means]
    centres = [(scale * mean.mean, height, colours[arm]) for height, arm, mean in drawn]
    if centres:
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
        f" Right: differences from {table.title_of(table.baseline)} at the same seed; the vertical "
        f"line marks 0. {spell_family(table.family)}"
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
            # Frozen: columns of `figures/final_values.csv`, which scripts read by name;
            # tests/reports/figures/test_final.py fails.
            place = {"shown": shown, "arm": arm}
            for seed, value in values.items():
                records.append(place | {"seed": seed, "value": value} | numbers_of(None))
            if arm in means[shown]:
                mean = numbers_of(means[shown][arm])
                records.append(place | {"seed": None, "value": None} | mean)
    return spell_csv(records)


LEAST_ARMS = 6
"""Smallest number of arms for this figure; for fewer, the table of differences is enough."""
MOST_ARMS = 24
LEVEL = 0.05
_BETTER, _WORSE, _OPEN = "#0072B2", "#D55E00", "#f2f2f2"


def draw_ranks(study: Study, arranged: Arranged, table: Table) -> Figure | None:
    """Return the figure of the mean paired difference in headline metric between every two arms."""
    found = values_of(arranged, table.metric, table.readout)
    values = {row.arm: found[row.arm] for row in table.printed if len(found[row.arm]) > 1}
    has_equal_seeds = len({tuple(sorted(by_seed)) for by_seed in values.values()}) == 1
    is_paired = has_equal_seeds and are_paired(study, values, table.metric)
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
        titles = [table.title_of(arm) for arm in arms]
        spelled = [spell_number(means[arm] * shown.scale, shown.digits) for arm in arms]
        axes.set_yticks(places, list(map("  ".join, zip(titles, spelled, strict=True))))
        axes.set_xticks(places, titles, rotation=60, ha="right")
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
                    {"better": arms[i], "worse": arms[j], "n": c.n}
                    | {"worse_minus_better": c.difference, "ci_low": c.ci_low}
                    | {"ci_high": c.ci_high, "p": c.p, "p_holm": p}
                    for (i, j), c, p in zip(pairs, compared, adjusted, strict=True)
                ]
            ),
        )
