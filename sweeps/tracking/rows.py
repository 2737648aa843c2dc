"""Rows: epochs and outcome of a run so far, and its metric values as rows for MLflow."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mixup_core.records import EpochRecord
from mixup_core.store.manifests import EpochFacts
from sweeps.state.results import Outcome, RunResult
from sweeps.study.study import Run

SECONDS = "time/seconds"
"""Metric in MLflow of the time that an epoch took."""

LoggedEpoch = tuple[EpochRecord, EpochFacts]


class Row(NamedTuple):
    """One value of a metric at one step of a run in MLflow.

    MLflow's table shows, for each metric, the row with the largest step, then time, then value. It
    stores an equal row only once.
    """

    name: str
    step: int
    """Number of epochs trained."""
    at_ms: int
    """Unix time in ms."""
    value: float


@dataclass(frozen=True, kw_only=True)
class RunProgress:
    """Epochs and outcome of a run so far, from the store or from the driver that trains it."""

    run: Run
    outcome: Outcome
    epochs: tuple[LoggedEpoch, ...] = ()
    """Epochs in order. For a run in training, epochs shared with other runs may be missing."""
    failure: str = ""
    """Error message, if the run failed or diverged; otherwise empty."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment in which the last epochs were trained."""
    is_live: bool = False
    """True if a driver trains the run."""

    @classmethod
    def stored(cls, result: RunResult) -> "RunProgress":
        """Return the progress of a run that no driver is training, from its stored result."""
        failure = result.failure
        return cls(
            run=result.run,
            outcome=result.outcome,
            epochs=tuple(zip(result.records, result.facts, strict=True)),
            failure=failure.message if failure and result.outcome == failure.kind else "",
            environment={} if result.stage is None else result.stage.environment,
        )

    @property
    def is_complete(self) -> bool:
        """True if every epoch of the run is stored."""
        return self.outcome == "complete"

    @property
    def has_begun(self) -> bool:
        """True if the run has been in training; only such runs are in MLflow."""
        return self.is_live or self.outcome != "missing"

    def trained(self, epochs: Iterable[LoggedEpoch]) -> "RunProgress":
        """Return a copy with newly stored epochs; it counts as in training until the store is read.

        The result is this same object if no epoch is new.
        """
        known = {record.epoch: (record, facts) for record, facts in self.epochs}
        merged = {record.epoch: (record, facts) for record, facts in epochs} | known
        if len(merged) == len(known):
            return self
        in_order = tuple(merged[epoch] for epoch in sorted(merged))
        return replace(self, epochs=in_order, outcome="partial", failure="", is_live=True)


def rows_of(epochs: Iterable[LoggedEpoch]) -> list[Row]:
    """Return all metric values of some epochs as rows for MLflow, with times from the store."""
    return [
        Row(name, record.epoch + 1, facts.stored_at_ms, value)
        for record, facts in epochs
        for name, value in {**record.metrics, SECONDS: facts.seconds}.items()
    ]


def digest_of(rows: Iterable[Row], *others: object) -> str:
    """Return a hash of rows and other values, which shows whether MLflow has them already."""
    return hashlib.sha256(repr((sorted(rows), others)).encode()).hexdigest()[:32]
