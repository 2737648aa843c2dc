"""Axis, Series: the axis of a run's records, and groups of metrics of one kind."""

from dataclasses import dataclass
from typing import Literal

from mixup_core.problem.metric import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """The axis along which a run's records lie: epochs, or flow time."""

    label: str = "epochs trained"
    unit: str = "epoch"
    """Name of one step, for messages."""
    scale: Literal["linear", "log"] = "linear"
    metric: str | None = None
    """Metric that holds a record's position; None means the number of records before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Metrics of the same kind for several parts of a run, named `HEAD/PART`."""

    head: str
    """Prefix of the metrics' names. Metrics that the problem declares by their full name are
    excluded.
    """
    metric: Metric
    """Label and unit of all metrics of the series."""
    along: str | None = None
    """Label of the x-axis if the parts are numbers: the last record's values are drawn against
    them. None: each part is a curve along the axis of the problem.
    """
