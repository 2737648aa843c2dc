"""Read-outs: which number stands for a run. Plain values, one choice."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Annotated, ClassVar

from mixup_core.records import EpochRecord
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Range


@dataclass(frozen=True, kw_only=True, slots=True)
class Last:
    """The last record: what the papers print."""

    tag: ClassVar = "last"
    evaluations: ClassVar = 1
    """Number of evaluations that a run must have."""

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the number of a finished run; None if it did not measure the metric."""
        return records[-1].metrics.get(metric)

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of a run's number, from those of the metric."""
        return least, most

    def __str__(self) -> str:
        """Return what captions call it."""
        return "last epoch"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanOfLast(Checked):
    """The mean of the last evaluations, which is less noisy than one of them."""

    tag: ClassVar = "mean_of_last"

    evaluations: Annotated[int, Range(2)]
    """Number of evaluations."""

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the number of a finished run; None if it measured the metric too seldom."""
        measured = (r.metrics[metric] for r in reversed(records) if metric in r.metrics)
        last = list(islice(measured, self.evaluations))
        return fmean(last) if len(last) == self.evaluations else None

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of a run's number, from those of the metric."""
        return least, most

    def __str__(self) -> str:
        """Return what captions call it."""
        return f"mean of the last {self.evaluations} evaluations"


@dataclass(frozen=True, kw_only=True, slots=True)
class Averaged:
    """The last record of the network with averaged weights, where a run keeps one."""

    tag: ClassVar = "averaged"
    evaluations: ClassVar = 1

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the number of a finished run; None if it averaged no weights."""
        return records[-1].metrics.get(f"{metric}_averaged")

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of a run's number, from those of the metric."""
        return least, most

    def __str__(self) -> str:
        """Return what captions call it."""
        return "averaged weights, last epoch"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rise:
    """The last measurement minus the least of the run: what training on for too long has cost.

    It is never negative and looks at every evaluation, so it judges a claim and no arm.
    """

    tag: ClassVar = "rise"
    evaluations: ClassVar = 1

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the number of a finished run; None if it did not measure the metric last."""
        measured = [record.metrics[metric] for record in records if metric in record.metrics]
        return measured[-1] - min(measured) if metric in records[-1].metrics else None

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of a run's number, from those of the metric."""
        return 0.0, most - least

    def __str__(self) -> str:
        """Return what captions call it."""
        return "last epoch minus the least evaluation"


Readout = Last | MeanOfLast | Averaged
"""Read-out of a study: the number by which its arms are compared."""

ClaimReadout = Readout | Rise
"""Read-out of a claim."""
