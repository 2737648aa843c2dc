"""Parameter axis: scale, limits and ticks of a figure's axis for one search parameter."""

import math
import textwrap
from typing import Any, Literal

from matplotlib.axis import Axis
from matplotlib.ticker import MaxNLocator

from reports.figures.canvas import tick_logarithms
from sweeps.study.space import Categorical, Integer, Parameter, Real

_LETTERS = 36
"""Approximate number of letters that fit below one panel, shared by all tick labels."""

_MOST_TICKS = 6

MARGIN = 0.05
"""Margin of a map beyond each bound of its parameters, as a fraction of the range."""

Edge = Literal["low", "high"]


def is_number(parameter: Parameter) -> bool:
    """Return True if a figure can have an axis of numbers for a search parameter.

    It can if the values are numbers. A categorical parameter may also have the value None (not
    set), and needs two values or more, because one value spans no axis.
    """
    if not isinstance(parameter.distribution, Categorical):
        return True
    numbers = set(parameter.distribution.choices) - {None}
    are_numbers = all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
    return bool(numbers) and are_numbers and len(parameter.distribution.choices) > 1


def mark(axis: Axis, parameter: Parameter) -> None:
    """Set scale, limits, ticks and label of a figure's axis that shows a search parameter."""
    axis.set_label_text(parameter.path)
    name = "x" if axis is axis.axes.xaxis else "y"
    if isinstance(parameter.distribution, Categorical):
        choices = parameter.distribution.choices
        broad = max(4, _LETTERS // len(choices))
        named = ["null" if choice is None else str(choice) for choice in choices]
        axis.set_ticks(range(len(choices)), ["\n".join(textwrap.wrap(n, broad)) for n in named])
        axis.axes.set(**{f"{name}lim": (-0.5, len(choices) - 0.5)})
        return
    limits = beyond(parameter, "low", MARGIN), beyond(parameter, "high", MARGIN)
    if is_log(parameter):
        axis.axes.set(**{f"{name}scale": "log"})  # must precede ticks and labels, which it resets
        tick_logarithms(axis)
    elif isinstance(parameter.distribution, Integer):
        axis.set_major_locator(MaxNLocator(integer=True, nbins=_MOST_TICKS))
    axis.axes.set(**{f"{name}lim": limits})


def is_log(parameter: Parameter) -> bool:
    """Return True if figures show a search parameter on a logarithmic axis."""
    return isinstance(parameter.distribution, Real) and parameter.distribution.is_log


def bound(parameter: Parameter, edge: Edge) -> float:
    """Return the lowest (`low`) or highest (`high`) value of a numeric parameter of a search."""
    assert not isinstance(parameter.distribution, Categorical)
    return float(getattr(parameter.distribution, edge))


def beyond(parameter: Parameter, edge: Edge, part: float) -> float:
    """Return a position on a parameter's axis, outside the values that the search may try."""
    low, high = bound(parameter, "low"), bound(parameter, "high")
    away = -part if edge == "low" else 1 + part
    if is_log(parameter):
        return float(low * (high / low) ** away)
    return low + (high - low) * away


def place(parameter: Parameter, value: Any) -> float:
    """Return the position of a search parameter's value on the axis of the parameter.

    It is the number itself, or the index of the value among the choices of a categorical parameter.
    """
    if isinstance(parameter.distribution, Categorical):
        return parameter.distribution.choices.index(value)
    return float(value) if value is not None else math.nan
