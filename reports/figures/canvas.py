"""Canvas: panels, scales, colours and legends of figures, saved with reproducible bytes."""

import io
import math
import re
import textwrap
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from mixup_core.problem import Axis, Config, Metric, problem_of
from mixup_core.records import EpochRecord
from reports.numbers.summary import Summary
from reports.tables.table import Table

# Okabe and Ito's palette for colour-blind readers, without yellow, which is too faint.
_BLUE, _ORANGE, _GREEN = "#0072B2", "#E69F00", "#009E73"
_OTHERS = ("#CC79A7", "#56B4E9", "#D55E00", "#000000")
_OF_METHODS = {"erm": _BLUE, "midpoint": _ORANGE, "uniform": _GREEN}

Dashes = str | tuple[float, tuple[float, ...]]

LineStyle = tuple[str, Dashes]

Styles = Mapping[str, LineStyle]

_DASHES: tuple[Dashes, ...] = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 3)))


def arm_styles(arms: Mapping[str, Config]) -> dict[str, LineStyle]:
    """Return the colour and dashes (its look) of each arm in figures, in the arms' order."""
    named: dict[str, LineStyle] = {}
    taken = set()
    for arm, config in arms.items():
        method = problem_of(config).presentation.method(config)
        if method in _OF_METHODS and method not in taken:
            taken.add(method)
            named[arm] = (_OF_METHODS[method], "-")
    free = [*_OTHERS, *(colour for method, colour in _OF_METHODS.items() if method not in taken)]
    others = [arm for arm in arms if arm not in named]
    for place, arm in enumerate(others):
        turn, colour = divmod(place, len(free))
        named[arm] = (free[colour], _DASHES[turn % len(_DASHES)])
    return {arm: named[arm] for arm in arms}


def line_styles(
    lines: Mapping[str, Sequence[str]], styles: Styles, taken: Sequence[LineStyle] = ()
) -> dict[str, LineStyle]:
    """Return the colour and dashes of each line that connects several arms in a figure."""
    order = {arm: place for place, arm in enumerate(styles)}
    colours = (*_OTHERS, *_OF_METHODS.values())
    palette = [(colour, dashes) for dashes in _DASHES for colour in colours]
    found: dict[str, LineStyle] = {}
    for label, arms in lines.items():
        own = [styles[arm] for arm in sorted(arms, key=order.__getitem__)]
        drawn = [*taken, *found.values()]
        used = {colour for colour, _ in drawn}
        free = [look for look in (*own, *palette) if look[0] not in used]
        free += [look for look in palette if look not in drawn]
        found[label] = (free or own)[0]
    return found


if TYPE_CHECKING:
    import pandas as pd

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.handlelength": 3.0,
    "svg.hashsalt": "mixsweep",
}
"""Matplotlib settings of all figures. Font sizes and line widths are in points, for figures printed
at the full width of a page.
"""

PANEL_INCHES = 3.4

_MOST_ABREAST = 3

_LETTER_INCHES = 0.08
"""Approximate width of a letter in a legend, in inches."""

_DOTS_PER_INCH = 200

_PACKED = {"compress_level": 2}
"""Options for PNG files: a low compression level. A higher one takes as long as the drawing itself
and makes the file only a tenth smaller.
"""

_WIDE = 1e3
"""An axis is logarithmic if its largest value is at least this many times its smallest."""

_MARGIN = 0.05
"""Margin of a logarithmic axis below its smallest value, as a fraction of the range."""

_MOST_STRIPS = 60
"""Largest number of strips with a tooltip in one panel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Strip:
    """A vertical strip of a figure, with a text as its tooltip."""

    left: float
    """Left edge as a fraction of the figure's width, in [0, 1]; `width` is in the same unit."""
    top: float
    width: float
    height: float
    said: str


Told = tuple[Axes, Mapping[float, str]]
"""A panel, and the tooltip texts for positions along its horizontal axis."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A figure of a report: its images (SVG and PNG), title, caption and numbers.

    Drawn again from equal results, its files have the same bytes.
    """

    name: str
    title: str
    caption: str
    svg: bytes
    png: bytes
    numbers: str
    """All numbers that the figure shows, as CSV. Metrics are in their stored unit: errors are
    fractions.
    """
    strips: tuple[Strip, ...] = ()

    @property
    def width(self) -> float:
        """Width of the figure as SVG, in typographic points (1/72 inch)."""
        found = re.search(rb'<svg [^>]*?width="([0-9.]+)pt"', self.svg)
        assert found is not None
        return float(found[1])

    @property
    def frame(self) -> "pd.DataFrame":
        """All numbers that the figure shows, as a DataFrame with the columns of its CSV file."""
        import pandas as pd

        return pd.read_csv(io.StringIO(self.numbers))

    def __repr__(self) -> str:
        """Return name and title only; images and numbers would be too long."""
        return f"<Figure {self.name}: {self.title}>"

    def _repr_png_(self) -> bytes:
        """Return the PNG, which a notebook displays."""
        return self.png


@contextmanager
def styled() -> Iterator[None]:
    """Context manager: inside it, matplotlib draws in the style of reports."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def draw_axis(axes: Axes, axis: Axis) -> None:
    """Set label, scale and ticks of a panel's horizontal axis, as a problem's axis defines them."""
    axes.set_xlabel(axis.label)
    if axis.scale == "log":
        axes.set_xscale("log")
        return
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=axis.metric is None, nbins=6))


def place_of(record: EpochRecord, axis: Axis) -> float | None:
    """Return the horizontal position at which metrics of an epoch are drawn; None if unknown."""
    return record.epoch + 1 if axis.metric is None else record.metrics.get(axis.metric)


def spell_counts(table: Table) -> str:
    """Return how many of each arm's seeds are complete, as text for captions."""
    counts = Counter(row.seeds for row in table.printed)
    ((common, times),) = counts.most_common(1)
    if times == 1 or 2 * times < len(table.printed):
        return ", ".join(f"{row.title} n = {row.seeds}" for row in table.printed)
    others = [f"{row.title} n = {row.seeds}" for row in table.printed if row.seeds != common]
    return f"n = {common} for each arm" + (f", except {', '.join(others)}" if others else "")


def panelled(count: int, *, height: float = 2.4) -> tuple[Canvas, list[Axes]]:
    """Return an empty matplotlib figure and its panels, in rows of about equally many panels."""
    rows = math.ceil(count / _MOST_ABREAST)
    columns = math.ceil(count / rows)
    size = PANEL_INCHES * max(1.3, columns), 0.5 + height * rows
    canvas = Canvas(figsize=size, layout="constrained")
    panels = list(canvas.subplots(rows, columns, squeeze=False).flat)
    for axes in panels[count:]:
        axes.set_visible(False)
    return canvas, panels[:count]


def legend(canvas: Canvas, axes: Axes) -> None:
    """Draw the legend of a panel above the figure, with as many entries in a row as fit."""
    handles, labels = axes.get_legend_handles_labels()
    widest = max((len(label) for label in labels), default=1) + 8
    fitting = int(canvas.get_figwidth() / (widest * _LETTER_INCHES))
    columns = max(1, min(len(labels), fitting))
    # Matplotlib fills legends by column; readers read them by row.
    order = [place for column in range(columns) for place in range(column, len(labels), columns)]
    canvas.legend(
        [handles[place] for place in order], [labels[place] for place in order],
        loc="outside upper center", ncols=columns,
    )  # fmt: skip


def wrapped(heading: str) -> str:
    """Return the label of an axis, broken into lines that fit the side of a panel."""
    return "\n".join(textwrap.wrap(heading, 34))


def scale_values(
    axes: Axes, metric: Metric, values: Iterable[float], *, across: bool = False
) -> None:
    """Choose scale and limits of the axis that shows a metric, after everything is drawn."""
    axis = axes.xaxis if across else axes.yaxis
    limit = axes.set_xlim if across else axes.set_ylim
    if metric.unit == "%":
        low, high = axis.get_view_interval()
        limit(max(0.0, low), min(100.0, high))
    elif (ends := ends_of(values)) and ends[0] > 0 and ends[1] >= _WIDE * ends[0]:
        (axes.set_xscale if across else axes.set_yscale)("log")
        high = max(axis.get_view_interval())
        limit(ends[0] * (ends[0] / high) ** _MARGIN, high)


def draw_mean(  # noqa: PLR0913  what is drawn and how
    axes: Axes,
    summaries: Mapping[float, Summary],
    scale: float,
    look: LineStyle,
    label: str,
    dots: str = "",
) -> None:
    """Draw the means of a curve as a line, and their intervals as a band where they are known."""
    colour, dashes = look
    means = [scale * summary.mean for summary in summaries.values()]
    axes.plot(
        list(summaries), means, color=colour, linestyle=dashes, label=label, marker=dots, ms=3
    )
    banded = {
        place: (scale * summary.ci_low, scale * summary.ci_high)
        for place, summary in summaries.items()
        if summary.ci_low is not None and summary.ci_high is not None
    }
    lows, highs = zip(*banded.values(), strict=True) if banded else ((), ())
    axes.fill_between(list(banded), lows, highs, color=colour, alpha=0.18, linewidth=0)


def ends_of(values: Iterable[float]) -> tuple[float, ...]:
    """Return the smallest and the largest of the finite numbers given; empty if none is finite."""
    known = array("d", filter(math.isfinite, values))
    return (min(known), max(known)) if known else ()


def spell_scales(panels: Iterable[Axes], *, across: bool = False) -> str:
    """Return a caption's sentence on how intervals are cut on a figure's logarithmic axes."""
    scales = {axes.get_xscale() if across else axes.get_yscale() for axes in panels}
    if "log" not in scales:
        return ""
    return " On a logarithmic axis, an interval that reaches 0 is cut at the edge of the panel."


def finished(  # noqa: PLR0913  what a figure is made of
    canvas: Canvas, *, name: str, title: str, caption: str, numbers: str, told: Sequence[Told] = ()
) -> Figure:
    """Return a matplotlib figure as a report's `Figure`: SVG and PNG without dates inside."""
    if (engine := canvas.get_layout_engine()) is not None:
        engine.execute(canvas)
        canvas.set_layout_engine("none")  # the layout is computed once for all formats
    strips = tuple(strip for axes, places in told for strip in strips_of(canvas, axes, places))
    svg, png = io.BytesIO(), io.BytesIO()
    # `savefig` would lay out each format anew. PNG first: a figure with many lines needs hundreds
    # of MB while it is drawn, which are freed once the figure is on another canvas.
    dots = canvas.get_dpi()
    canvas.set_dpi(_DOTS_PER_INCH)
    FigureCanvasAgg(canvas).print_png(png, metadata={"Software": None}, pil_kwargs=_PACKED)
    canvas.set_dpi(dots)
    FigureCanvasSVG(canvas).print_svg(svg, metadata={"Date": None, "Creator": None})
    return Figure(
        name=name,
        title=title,
        caption=caption,
        svg=svg.getvalue(),
        png=png.getvalue(),
        numbers=numbers,
        strips=strips,
    )


def strips_of(canvas: Canvas, axes: Axes, places: Mapping[float, str]) -> Iterator[Strip]:
    """Yield a strip for each position of a panel that has a tooltip text, at most 60 strips."""
    if not places:
        return
    count, every = min(len(places), _MOST_STRIPS), list(places)
    kept = [every[(number + 1) * len(every) // count - 1] for number in range(count)]
    box, width, low = axes.get_position(), canvas.bbox.width, axes.get_ylim()[0]
    at = [axes.transData.transform((place, low))[0] / width for place in kept]
    bounds = [box.x0, *((left + right) / 2 for left, right in pairwise(at)), box.x1]
    for place, (left, right) in zip(kept, pairwise(bounds), strict=True):
        yield Strip(
            left=round(float(left), 4),
            top=round(float(1 - box.y1), 4),
            width=round(float(right - left), 4),
            height=round(float(box.height), 4),
            said=places[place],
        )
