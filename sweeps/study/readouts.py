"""Read-outs: which number stands for a run. Plain values, one choice."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Annotated, ClassVar

from mixup_core.records import EpochRecord
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Count, Range


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
        """Return the name in captions."""
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
        """Return the name in captions."""
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
        """Return the name in captions."""
        return "averaged weights, last epoch"


VALIDATION = "val/error"
"""Metric whose lowest value chooses the epoch that is read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BestValidation:
    """The record of the epoch with the lowest validation error, the first of equal ones.

    The run is trained to its end all the same. Metrics of the validation images themselves are not
    read so: the epoch was chosen by them, which would flatter every run.
    """

    tag: ClassVar = "best_validation"
    evaluations: ClassVar = 1

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the number of a finished run; None if that epoch did not measure the metric."""
        return _read_at_best(records, metric, len(records))

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of a run's number, from those of the metric."""
        return least, most

    def __str__(self) -> str:
        """Return the name in captions."""
        return "epoch of the lowest validation error"


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlyStopping(Checked):
    """The record that early stopping would keep: the best before validation stops to improve.

    A run would be stopped at the first evaluation that ends `patience` of them in a row without a
    new lowest validation error. It is trained to its end all the same, so that runs are shared with
    other read-outs.

    Source: Prechelt 1998, Early stopping, but when?, criterion UP.
    """

    tag: ClassVar = "early_stopping"
    evaluations: ClassVar = 1

    patience: Count
    """Number of evaluations in a row without a new lowest validation error."""

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the number of a finished run; None if that epoch did not measure the metric."""
        return _read_at_best(records, metric, self.patience)

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of a run's number, from those of the metric."""
        return least, most

    def __str__(self) -> str:
        """Return the name in captions."""
        evaluations = "evaluation" if self.patience == 1 else "evaluations"
        return f"early stopping on the validation error after {self.patience} {evaluations}"


def _read_at_best(records: Sequence[EpochRecord], metric: str, patience: int) -> float | None:
    """Return a metric at the lowest validation error, found with a patience in evaluations."""
    best: EpochRecord | None = None
    waited = 0
    for record in records:
        if VALIDATION not in record.metrics:
            continue
        if best is None or record.metrics[VALIDATION] < best.metrics[VALIDATION]:
            best, waited = record, 0
        else:
            waited += 1
        if waited == patience:
            break
    return None if best is None else best.metrics.get(metric)


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
        """Return the name in captions."""
        return "last epoch minus the least evaluation"


Readout = Last | MeanOfLast | Averaged | BestValidation | EarlyStopping
"""Read-out of a study: the number by which its arms are compared."""

ByValidation = BestValidation | EarlyStopping
"""Read-outs that need validation images."""

ClaimReadout = Readout | Rise
"""Read-out of a claim."""
