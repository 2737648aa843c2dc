"""Read-outs: rules that compute one number of a run, such as its error, from its epochs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from statistics import fmean
from typing import Annotated, ClassVar

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, Range
from mixup_core.records import AVERAGED, EpochRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class _OneNumber(Checked, ABC):
    """A rule that computes one number of a run from its epochs."""

    # Frozen: the texts of read-outs, which are hashed with claims (`statement_key`) and are in CSV
    # files; tests/sweeps/state/test_statements.py fails.
    label: ClassVar[str] = ""
    """Name in captions."""

    @abstractmethod
    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        """Return this number for a metric of a finished run; None if the run did not measure it."""

    def recorded(self, metric: str) -> str:
        """Return the name of the recorded metric that this read-out takes for a metric."""
        return metric

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        """Return the lowest and highest value that this read-out can have, for a metric's range."""
        return least, most

    def __str__(self) -> str:
        """Return the name of this read-out, for captions."""
        return self.label


@dataclass(frozen=True, kw_only=True, slots=True)
class Last(_OneNumber):
    """Read-out: the metric at the last epoch, which most papers report."""

    tag: ClassVar = "last"
    label: ClassVar = "last epoch"
    evaluations: ClassVar = 1
    """Smallest number of evaluations that a run needs for this read-out."""

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        return records[-1].metrics.get(metric)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanOfLast(_OneNumber):
    """Read-out: the mean of a metric's last evaluations, which varies less than a single one."""

    tag: ClassVar = "mean_of_last"

    evaluations: Annotated[int, Range(2)]
    """Number of evaluations, at least 2."""

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        measured = (r.metrics[metric] for r in reversed(records) if metric in r.metrics)
        last = list(islice(measured, self.evaluations))
        return fmean(last) if len(last) == self.evaluations else None

    def __str__(self) -> str:
        return f"mean of the last {self.evaluations} evaluations"


@dataclass(frozen=True, kw_only=True, slots=True)
class Averaged(_OneNumber):
    """Read-out: the metric of the network with averaged weights, at the last epoch."""

    tag: ClassVar = "averaged"
    label: ClassVar = "averaged weights, last epoch"
    evaluations: ClassVar = 1

    def recorded(self, metric: str) -> str:
        return metric + AVERAGED

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        return records[-1].metrics.get(self.recorded(metric))


VALIDATION = "val/error"
"""Metric whose lowest value selects the epoch in `BestValidation` and `EarlyStopping`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BestValidation(_OneNumber):
    """Read-out: the metric at the epoch with the lowest validation error, the first such epoch.

    The run is still trained to its last epoch. Metrics of the validation images cannot be
    read out in this way: these images select the epoch, so the values would be too optimistic.
    """

    tag: ClassVar = "best_validation"
    label: ClassVar = "epoch of the lowest validation error"
    evaluations: ClassVar = 1

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        return _read_at_best(records, metric, len(records))


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlyStopping(_OneNumber):
    """Read-out: the metric at the epoch that early stopping would select.

    A run would stop once `patience` evaluations in a row bring no new lowest validation error; the
    epoch with the lowest one so far is selected. The run is still trained to its last epoch, so
    that other read-outs can use it.

    Source: Prechelt 1998, Early stopping, but when?, criterion UP.
    """

    tag: ClassVar = "early_stopping"
    evaluations: ClassVar = 1

    patience: Count
    """Number of evaluations in a row without a new lowest validation error."""

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        return _read_at_best(records, metric, self.patience)

    def __str__(self) -> str:
        evaluations = "evaluation" if self.patience == 1 else "evaluations"
        return f"early stopping on the validation error after {self.patience} {evaluations}"


def _read_at_best(records: Sequence[EpochRecord], metric: str, patience: int) -> float | None:
    """Return a metric at the epoch that early stopping selects; None if not measured there."""
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
class Rise(_OneNumber):
    """Read-out: a metric's last minus its lowest value in a run, the cost of training too long.

    It is never negative. As it uses every evaluation, it is a read-out for claims, not for arms.
    """

    tag: ClassVar = "rise"
    label: ClassVar = "last epoch minus the least evaluation"
    evaluations: ClassVar = 2

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        measured = [record.metrics[metric] for record in records if metric in record.metrics]
        return measured[-1] - min(measured) if metric in records[-1].metrics else None

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        return 0.0, most - least


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak(_OneNumber):
    """Read-out: the height of the highest peak, that is how far a metric rises and falls again.

    The height at an evaluation is the smaller of two differences: its value minus the lowest value
    up to it, and its value minus the lowest value from it on. A metric that only falls has no peak;
    the read-out is then 0. As it uses every evaluation, it is a read-out for claims, not for arms.
    """

    tag: ClassVar = "peak"
    label: ClassVar = "highest rise that is followed by as large a fall"
    evaluations: ClassVar = 3

    def of(self, records: Sequence[EpochRecord], metric: str) -> float | None:
        measured = [record.metrics[metric] for record in records if metric in record.metrics]
        if len(measured) < self.evaluations:
            return None
        before = list(accumulate(measured, min))
        after = list(accumulate(reversed(measured), min))[::-1]
        lows = zip(measured, before, after, strict=True)
        return max(value - max(first, last) for value, first, last in lows)

    def bounds(self, least: float, most: float) -> tuple[float, float]:
        return 0.0, most - least


Readout = Last | MeanOfLast | Averaged | BestValidation | EarlyStopping
"""Read-outs that a study can use to compare its arms."""

ByValidation = BestValidation | EarlyStopping
"""Read-outs that need validation images."""

ClaimReadout = Readout | Rise | Peak
"""Read-outs that a claim can use."""


def of_predictions(readout: Readout) -> Last | Averaged:
    """Return the read-out of stored predictions, which are of the last epoch, in a study."""
    return readout if isinstance(readout, Averaged) else Last()
