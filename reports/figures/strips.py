"""Strip: an area of a figure that has a tooltip on the web page of a report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

_MOST_STRIPS = 60
"""Largest number of strips with a tooltip in one panel. If more positions have a text, this many of
them are chosen, evenly spaced.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Strip:
    """A vertical strip of a figure, with a text as its tooltip.

    A web page shows the text of the strip while the mouse pointer is over the strip.
    """

    left: float
    """Left edge as a fraction of the figure's width, in [0, 1]; `width` is in the same unit."""
    top: float
    """Top edge as a fraction of the figure's height, in [0, 1]; `height` is in the same unit."""
    width: float
    height: float
    said: str
    """Text of the tooltip; it may have several lines."""


def strips_of(canvas: Canvas, axes: Axes, places: Mapping[float, str]) -> Iterator[Strip]:
    """Yield a strip for each position of a panel that has a tooltip text, at most 60 strips.

    A strip reaches halfway to the next position on either side. Edges are rounded, so that machines
    with slightly different fonts produce the same page.

    Args:
        canvas: The figure, after its layout was computed.
        axes: The panel.
        places: Tooltip texts by position on the horizontal axis, in increasing order.
    """
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
