"""Read-outs: how one number is computed from the epochs of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from statistics import fmean
from typing import Annotated, ClassVar

from mixup_core.records import EpochRecord
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Count, Range


@dataclass(frozen=True, kw_only=True, slots=True)
class Last:
    """The last epoch, which most papers report."""

    tag: ClassVar = "last"
    evaluations: ClassVar = 1
    """Number of evaluations that a run must have."""

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the metric at the last epoch of a finished run; None if it was not measured."""
        return records[-1].metrics.get(metric)

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of the number, given those of the metric."""
        return least, most

    def __str__(self) -> str:
        """Return the name in captions."""
        return "last epoch"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanOfLast(Checked):
    """The mean of the last evaluations, which varies less than a single one."""

    tag: ClassVar = "mean_of_last"

    evaluations: Annotated[int, Range(2)]
    """Number of evaluations, at least 2."""

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the mean for a finished run; None if it has fewer evaluations of the metric."""
        measured = (r.metrics[metric] for r in reversed(records) if metric in r.metrics)
        last = list(islice(measured, self.evaluations))
        return fmean(last) if len(last) == self.evaluations else None

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of the number, given those of the metric."""
        return least, most

    def __str__(self) -> str:
        """Return the name in captions."""
        return f"mean of the last {self.evaluations} evaluations"


@dataclass(frozen=True, kw_only=True, slots=True)
class Averaged:
    """The last epoch of the network with averaged weights, for runs that average weights."""

    tag: ClassVar = "averaged"
    evaluations: ClassVar = 1

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the number of a finished run; None if it did not average weights."""
        return records[-1].metrics.get(f"{metric}_averaged")

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of the number, given those of the metric."""
        return least, most

    def __str__(self) -> str:
        """Return the name in captions."""
        return "averaged weights, last epoch"


VALIDATION = "val/error"
"""Metric whose lowest value selects the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BestValidation:
    """The epoch with the lowest validation error, the first one if several are equal.

    The run is still trained to its last epoch. Metrics of the validation images cannot be
    read at this epoch: it was selected by them, so they would be too optimistic.
    """

    tag: ClassVar = "best_validation"
    evaluations: ClassVar = 1

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the number of a finished run; None if that epoch did not measure the metric."""
        return _read_at_best(records, metric, len(records))

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of the number, given those of the metric."""
        return least, most

    def __str__(self) -> str:
        """Return the name in captions."""
        return "epoch of the lowest validation error"


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlyStopping(Checked):
    """The epoch that early stopping would select: the best one before improvement stops.

    A run would stop at the first evaluation that ends `patience` evaluations in a row without a new
    lowest validation error. It is still trained to its last epoch, so that other read-outs can use
    the same run.

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
        """Return the bounds of the number, given those of the metric."""
        return least, most

    def __str__(self) -> str:
        """Return the name in captions."""
        evaluations = "evaluation" if self.patience == 1 else "evaluations"
        return f"early stopping on the validation error after {self.patience} {evaluations}"


def _read_at_best(records: Sequence[EpochRecord], metric: str, patience: int) -> float | None:
    """Return a metric at the epoch with the lowest validation error, with early stopping."""
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
    """The last value minus the lowest value of the run: the cost of training for too long.

    It is never negative. As it uses every evaluation, it is a read-out for claims, not for arms.
    """

    tag: ClassVar = "rise"
    evaluations: ClassVar = 2

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the number of a finished run; None if its last epoch lacks the metric."""
        measured = [record.metrics[metric] for record in records if metric in record.metrics]
        return measured[-1] - min(measured) if metric in records[-1].metrics else None

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of the number, given those of the metric."""
        return 0.0, most - least

    def __str__(self) -> str:
        """Return the name in captions."""
        return "last epoch minus the least evaluation"


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """The height of the highest inner peak: how far a metric rises and then falls again.

    Over all evaluations, the largest of the lesser of two differences: from the lowest value before
    an evaluation to its own, and from that to the lowest value after it. Two descents have a peak
    between them; a metric that falls all the time has none, and gives 0. As it uses every
    evaluation, it is a read-out for claims, not for arms.
    """

    tag: ClassVar = "peak"
    evaluations: ClassVar = 3

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return the number of a finished run; None with fewer than three values."""
        measured = [record.metrics[metric] for record in records if metric in record.metrics]
        if len(measured) < self.evaluations:
            return None
        before = list(accumulate(measured, min))
        after = list(accumulate(reversed(measured), min))[::-1]
        lows = zip(measured, before, after, strict=True)
        return max(value - max(first, last) for value, first, last in lows)

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the bounds of the number, given those of the metric."""
        return 0.0, most - least

    def __str__(self) -> str:
        """Return the name in captions."""
        return "highest rise that is followed by as large a fall"


Readout = Last | MeanOfLast | Averaged | BestValidation | EarlyStopping
"""Read-outs of a study: they give the numbers by which its arms are compared."""

ByValidation = BestValidation | EarlyStopping
"""Read-outs that need validation images."""

ClaimReadout = Readout | Rise | Peak
"""Read-outs of a claim."""
