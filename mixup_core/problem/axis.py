"""Axis: the x-axis of learning curves; Series: a metric for many places, such as one per layer."""

from dataclasses import dataclass
from typing import Literal

from mixup_core.problem.metric import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """The x-axis of the learning curves of a run: epochs, or a metric such as simulated time.

    Example:
        >>> from mixsweep.plugins import Axis
        >>> Axis(label="time", unit="step", scale="log", metric="time").unit
        'step'
    """

    label: str = "epochs trained"
    unit: str = "epoch"
    """Name of one step along the axis in messages, such as `epoch` or `doubling`."""
    scale: Literal["linear", "log"] = "linear"
    metric: str | None = None
    """Name of the metric whose value is a record's position on the axis. None: the position is the
    number of finished epochs.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Metrics of one kind that one figure shows, named `HEAD/PART`: `norm/layer/1`, and so on.

    Example:
        >>> from mixsweep.plugins import Metric, Series
        >>> norms = Series(head="norm/layer", metric=Metric(label="weight norm"), along="layer")
        >>> norms.head  # its metrics are named norm/layer/1, norm/layer/2, ...
        'norm/layer'
    """

    head: str
    """The common `HEAD` of the metrics' names. A metric that `Problem.metrics` declares does not
    belong to the series, even if its name begins with `HEAD/`.
    """
    metric: Metric
    """Label and unit shared by all metrics of the series."""
    along: str | None = None
    """Label of the x-axis if each `PART` is a number: the figure then shows the values of the last
    record over these numbers. None: the figure has one panel per arm, in which each `PART` is a
    row of cells over `Problem.axis`, coloured by value.
    """
