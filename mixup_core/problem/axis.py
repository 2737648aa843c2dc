"""Axis, Series: what the records of a run stand along, and metrics of one kind."""

from dataclasses import dataclass
from typing import Literal

from mixup_core.problem.metric import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """The axis of the records of a run: epochs, or flow time."""

    label: str = "epochs trained"
    unit: str = "epoch"
    """One step, for messages."""
    scale: Literal["linear", "log"] = "linear"
    metric: str | None = None
    """Metric that holds the place of a record on the axis; None: the number of records so far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Metrics of one kind, one of each part of a run: `HEAD/PART`."""

    head: str
    """Metrics below it that the problem declares by their names are none of the series."""
    metric: Metric
    """Metric that each of them is shown as."""
    along: str | None = None
    """Label of the parts if they are numbers: the values of the last record stand along them. None:
    each part has its values along the axis of the problem."""
