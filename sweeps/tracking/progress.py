"""Progress: the latest that is known of a run, and the rows that MLflow should hold of it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mixup_core.records import EpochRecord
from mixup_core.store.manifests import EpochFacts
from sweeps.state.results import Outcome, RunResult
from sweeps.study.study import Run

LoggedEpoch = tuple[EpochRecord, EpochFacts]

_UNENDED: frozenset[Outcome] = frozenset({"partial", "missing"})


class Row(NamedTuple):
    """One value of a metric. MLflow's table shows the greatest row of each metric."""

    name: str
    step: int
    """Epochs trained."""
    at_ms: int
    """Unix time in ms."""
    value: float


@dataclass(frozen=True, kw_only=True)
class RunProgress:
    """The latest known state of a run, from the store or from the driver that trains it."""

    run: Run
    outcome: Outcome
    epochs: tuple[LoggedEpoch, ...] = ()
    """In their order. A run in training may lack those that it shares with another."""
    failure: str = ""
    """Cause, if the run ended early."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment that trained the last epochs."""
    is_live: bool = False
    """True if a driver trains the run."""

    @classmethod
    def stored(cls, result: RunResult) -> "RunProgress":
        """Return the stored progress of a run that no driver trains."""
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
        """True if every epoch is stored."""
        return self.outcome == "complete"

    @property
    def has_ended(self) -> bool:
        """True if the run is complete or will not go on."""
        return self.outcome not in _UNENDED

    def trained(self, epochs: Iterable[LoggedEpoch]) -> "RunProgress":
        """Return the progress with epochs that were stored just now; itself if none of them is new.

        The run is in training from then on: only the store knows that all epochs are there.
        """
        known = {record.epoch: (record, facts) for record, facts in self.epochs}
        merged = {record.epoch: (record, facts) for record, facts in epochs} | known
        if len(merged) == len(known):
            return self
        in_order = tuple(merged[epoch] for epoch in sorted(merged))
        return replace(self, epochs=in_order, outcome="partial", failure="", is_live=True)

    def rows(self) -> list[Row]:
        """Return every value of the run, its time from the store too, never a clock."""
        return [
            Row(name, record.epoch + 1, facts.stored_at_ms, value)
            for record, facts in self.epochs
            for name, value in record.metrics.items()
        ]


def epochs_of(rows: Iterable[Row]) -> tuple[LoggedEpoch, ...]:
    """Return the epochs whose rows these are; how long each took is not among them."""
    metrics: dict[int, dict[str, float]] = {}
    times: dict[int, int] = {}
    for row in sorted(rows):
        metrics.setdefault(row.step, {})[row.name] = row.value
        times[row.step] = max(row.at_ms, times.get(row.step, 0))
    return tuple(
        (
            EpochRecord(epoch=step - 1, metrics=metrics[step]),
            EpochFacts(seconds=math.nan, stored_at_ms=times[step]),
        )
        for step in sorted(metrics)
    )
