"""Axis, Series: the x-axis of a run's records, and groups of metrics of one kind."""

from dataclasses import dataclass
from typing import Literal

from mixup_core.problem.metric import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """The x-axis along which the records of a run lie: epochs, or a metric such as flow time."""

    label: str = "epochs trained"
    unit: str = "epoch"
    """Name of one step along the axis, for messages."""
    scale: Literal["linear", "log"] = "linear"
    metric: str | None = None
    """Metric that gives each record's position; None: the position is the number of finished
    epochs.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Metrics of one kind for several parts of a run, named `HEAD/PART`."""

    head: str
    """Common prefix of the metrics' names. Metrics that the problem declares by their full name are
    excluded.
    """
    metric: Metric
    """Label and unit shared by all metrics of the series."""
    along: str | None = None
    """Label of the x-axis if the parts are numbers: the last record's values are drawn against
    them. None: each part is drawn as a curve along the axis of the problem.
    """
