"""Projection: MLflow kept equal to the checkpoint store.

The store is the truth. An empty MLflow is filled from it, only missing rows are sent, and a run in
MLflow that contradicts it is replaced.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mixup_core.problem import Config
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import EpochFacts
from mixup_core.tree import flatten
from sweeps.results import Outcome, RunResult
from sweeps.study import Run, Study
from sweeps.tracking.experiment import (
    MAX_TAG,
    NOTE_TAG,
    PARENT_TAG,
    Entry,
    Experiment,
    Row,
    Status,
    Wanted,
)

Epoch = tuple[EpochRecord, EpochFacts]
Summarise = Callable[[Sequence[Mapping[str, float]]], Mapping[str, float]]
"""Last metrics of the complete runs of one arm, at least one, to finite metrics such as
`test/error_mean`."""

SUMMARISE_EVERY = 10.0
"""Seconds between two summaries of an arm whose seeds end one after the other: each looks at all of
them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _End:
    """How far a run is, for the summary of its arm."""

    outcome: Outcome
    metrics: Mapping[str, float]
    """Of the last stored epoch."""
    at_ms: int


class Projection:
    """One study in MLflow. Each method calls MLflow and raises `MlflowException` when it cannot.

    There must be one at a time per study: the driver's, or that of a command which holds the
    study's lease.
    """

    uri: str
    """The tracking address."""

    def __init__(  # noqa: PLR0913  what a projection is of, and how it is written
        self,
        study: Study,
        uri: str,
        *,
        summarise: Summarise,
        artifact_location: str | None = None,
        tags: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Describe the projection; MLflow is opened by the first method that needs it.

        Args:
            study: Decides the arms, and how many seeds each should have.
            uri: The tracking address.
            summarise: Gives the metrics of an arm.
            artifact_location: Where artifacts go when the address is a database; None where a
                server decides.
            tags: Set on each run when it is created: commit, dirty, submission_id.
            clock: Seconds, for `SUMMARISE_EVERY`.
        """
        self.grow(study)
        self.uri = uri
        self._summarise = summarise
        self._artifact_location = artifact_location
        self._tags = dict(tags or {})
        self._clock = clock
        self._live: set[str] = set()
        self._ends: dict[str, _End] = {}
        self._reconciled: dict[str, tuple[str, int]] = {}
        self._summarised_at: dict[str, float] = {}
        self._outdated: set[str] = set()
        self._written: set[str] = set()
        self._opened: Experiment | None = None

    def grow(self, study: Study) -> None:
        """Go on with a study that has gained arms."""
        self._study = study
        self._positions = {run.key: index for index, run in enumerate(study.runs())}

    def forget(self) -> None:
        """Read MLflow again before the next write: after a failure nobody knows what arrived."""
        self._opened = None
        self._reconciled.clear()

    def write_epochs(self, run: Run, epochs: Sequence[Epoch]) -> None:
        """Add epochs of a run that is being trained; those already there are left alone.

        The run shows as running from here on. Only `end` and `reconcile` finish it, since only the
        store knows that all epochs are there.
        """
        if not epochs:
            return
        self._written.add(run.key)
        experiment = self._experiment()
        parent = experiment.bring(self._wanted_arm(run.arm))
        entry = experiment.bring(self._wanted_seed(run, parent, epochs))
        new = _absent(experiment.rows(entry), _seed_rows(epochs))
        if new:
            self._live.add(run.key)
            self._reconciled.pop(run.key, None)
            experiment.write(entry, rows=new, tags={"outcome": "partial"})
            experiment.set_status(entry, "RUNNING")
            experiment.set_status(parent, "RUNNING")

    def reconcile(self, results: Iterable[RunResult]) -> None:
        """Bring MLflow to what the store holds of some runs; doing it twice changes nothing.

        The arms of these runs are summarised over all that was ever given here of them.
        """
        arms: dict[str, list[RunResult]] = {}
        for result in results:
            arms.setdefault(result.run.arm, []).append(result)
        for arm, of_arm in arms.items():
            self._reconcile_arm(arm, of_arm)

    def note(self, results: Iterable[RunResult]) -> None:
        """Remember of runs what the summaries of their arms need: there may be many, long ones."""
        for result in results:
            self._ends[result.run.key] = _End(
                outcome=result.outcome,
                metrics=result.records[-1].metrics if result.records else {},
                at_ms=max((facts.stored_at_ms for facts in result.facts), default=0),
            )

    def end(self, result: RunResult) -> None:
        """Bring MLflow to what the store holds of a run that has ended; see `summarise`."""
        self.note([result])
        self._written.add(result.run.key)
        self._reconcile_seed(self._experiment().bring(self._wanted_arm(result.run.arm)), result)
        self._outdated.add(result.run.arm)

    def catch_up(self, results: Iterable[RunResult]) -> None:
        """Bring MLflow to what the store held, before this launch, of runs not written since."""
        for result in results:
            if result.run.key not in self._written:
                arm = result.run.arm
                self._reconcile_seed(self._experiment().bring(self._wanted_arm(arm)), result)
                self._outdated.add(arm)

    def summarise(self) -> None:
        """Summarise the arms of runs that have ended, if no run is left or the last time is past.

        A summary looks at all runs of its arm, so there is none for each of them.
        """
        for arm in sorted(self._outdated):
            if self._is_due(arm):
                self._reconcile_arm(arm, ())

    def settle(self) -> None:
        """Leave no run of the study RUNNING: nobody trains it any more."""
        self._live.clear()
        experiment = self._experiment()
        for entry in experiment.entries.values():
            if entry.status == "RUNNING":
                experiment.set_status(entry, "KILLED")

    def log_report(self, folder: Path, note: str) -> None:
        """Attach a report to the study.

        Args:
            folder: All files in it become artifacts.
            note: Markdown, shown when the run of level `sweep` is opened; cut to the length that
                MLflow takes.
        """
        experiment = self._experiment()
        name = self._study.name
        entry = experiment.bring(
            Wanted(level="sweep", name=name, title=name, tags={}, first_tags=self._tags)
        )
        experiment.attach(entry, folder)
        experiment.write(entry, tags={NOTE_TAG: note[:MAX_TAG]})
        experiment.set_status(entry, "FINISHED")

    def _experiment(self) -> Experiment:
        if self._opened is None:
            self._opened = Experiment.open(
                self.uri,
                self._study.name,
                artifact_location=self._artifact_location,
                tags={
                    NOTE_TAG: self._study.description,
                    "mlflow.experiment.primaryMetric.name": f"{self._main_metric()}_mean",
                    "mlflow.experiment.primaryMetric.greaterIsBetter": "False",
                },
            )
        return self._opened

    def _main_metric(self) -> str:
        if self._study.search is not None:
            return self._study.search.objectives[0]
        return self._study.headline

    def _is_due(self, arm: str) -> bool:
        summarised_at = self._summarised_at.get(arm, -math.inf)
        return self._clock() >= summarised_at + SUMMARISE_EVERY or all(
            run.key in self._ends and self._ends[run.key].outcome not in _UNENDED
            for run in reversed(self._study.runs_of(arm))  # the last seeds end last
        )

    def _reconcile_arm(self, arm: str, results: Sequence[RunResult]) -> None:
        """Bring an arm to what is known of it, and before that some of its runs."""
        self.note(results)
        self._written |= {result.run.key for result in results}
        experiment = self._experiment()
        runs = self._study.runs_of(arm)
        rows = self._arm_rows(runs)
        parent = experiment.bring(self._wanted_arm(arm), partial(_outranks, rows))
        experiment.adopt(parent, [run.key for run in runs])
        for result in results:
            self._reconcile_seed(parent, result)
        if arm in self._study.own_seeds:  # a point that was pruned has lost seeds
            experiment.drop_children(parent, keep={run.key for run in runs})
        outcome = _arm_outcome({self._outcome(run) for run in runs})
        experiment.write(
            parent, rows=_changed(experiment.rows(parent), rows), tags={"outcome": outcome}
        )
        is_live = any(run.key in self._live for run in runs)
        experiment.set_status(parent, "RUNNING" if is_live else _STATUS[outcome])
        self._summarised_at[arm] = self._clock()
        self._outdated.discard(arm)

    def _outcome(self, run: Run) -> Outcome:
        end = self._ends.get(run.key)
        return "missing" if end is None else end.outcome

    def _reconcile_seed(self, parent: Entry, result: RunResult) -> None:
        epochs = list(zip(result.records, result.facts, strict=True))
        rows = _seed_rows(epochs)
        tags = {"outcome": result.outcome, NOTE_TAG: ""}
        if result.failure is not None and result.outcome == result.failure.kind:
            tags[NOTE_TAG] = result.failure.message[:MAX_TAG]
        if result.stage is not None:
            environment = result.stage.environment
            tags |= {f"environment.{name}": value for name, value in environment.items()}
        content = parent.run_id, hash((*rows, *tags.items()))
        if self._reconciled.get(result.run.key) == content:
            return
        experiment = self._experiment()
        entry = experiment.bring(
            self._wanted_seed(result.run, parent, epochs), partial(_contradicts, rows)
        )
        experiment.write(entry, rows=_absent(experiment.rows(entry), rows), tags=tags)
        if result.outcome not in _UNENDED:
            self._live.discard(result.run.key)
        if result.run.key not in self._live:
            ended_at_ms = epochs[-1][1].stored_at_ms if epochs else None
            experiment.set_status(entry, _STATUS[result.outcome], ended_at_ms)
            entry.rows = None  # read again if they are ever needed
        self._reconciled[result.run.key] = content

    def _arm_rows(self, runs: Sequence[Run]) -> list[Row]:
        """Return the summary of an arm, at the step that counts its complete seeds.

        The time comes from the store too, so that a rebuilt MLflow holds the same rows.
        """
        known = [end for run in runs if (end := self._ends.get(run.key)) is not None]
        complete = [end.metrics for end in known if end.outcome == "complete"]
        counts = {"n": len(complete), "seeds_expected": len(runs)}
        summary = self._summarise(complete) if complete else {}
        at_ms = max((end.at_ms for end in known), default=0)
        return [
            Row(name, len(complete), at_ms, float(value))
            for name, value in {**counts, **summary}.items()
        ]

    def _wanted_arm(self, arm: str) -> Wanted:
        config = self._study.arms[arm]
        params = _spelled(config)
        del params["seed"]
        return Wanted(
            level="config",
            name=arm,
            title=arm,
            tags=self._grouping_tags(arm, config),
            first_tags={**self._tags, "outcome": "missing"},
            params=params,
        )

    def _wanted_seed(self, run: Run, parent: Entry, epochs: Sequence[Epoch]) -> Wanted:
        return Wanted(
            level="seed",
            name=run.key,
            title=f"seed={run.seed}",
            tags={
                **self._grouping_tags(run.arm, run.config),
                "seed": str(run.seed),
                "position": str(self._positions[run.key]),
                PARENT_TAG: parent.run_id,
            },
            first_tags={**self._tags, "outcome": "missing"},
            params=_spelled(run.config),
            started_at_ms=epochs[0][1].stored_at_ms if epochs else None,
        )

    def _grouping_tags(self, arm: str, config: Config) -> dict[str, str]:
        """Return what MLflow's table can be grouped by; a run without them leaves its group."""
        return {
            "study": self._study.name,
            "arm": arm,
            "dataset": self._study.problem.dataset(config),
        }


_STATUS: Mapping[Outcome, Status] = {
    "complete": "FINISHED",
    "failed": "FAILED",
    "diverged": "FAILED",
    "partial": "KILLED",
    "missing": "KILLED",
}
"""Status of a run that nobody is training."""
_UNENDED = {"partial", "missing"}
"""Outcomes after which a run may still be in training."""


def _seed_rows(epochs: Iterable[Epoch]) -> list[Row]:
    """Return the rows of some epochs: value and time from the store, never a clock (TRAP 26)."""
    return [
        Row(name, record.epoch, facts.stored_at_ms, value)
        for record, facts in epochs
        for name, value in record.metrics.items()
    ]


def _absent(known: Iterable[Row], rows: Iterable[Row]) -> list[Row]:
    """Return the rows whose metric has none at their step; sending one again is slow (TRAP 25)."""
    present = {(row.name, row.step) for row in known}
    return [row for row in rows if (row.name, row.step) not in present]


def _contradicts(rows: Iterable[Row], known: Iterable[Row]) -> bool:
    """Return whether MLflow knows a value of a run, or a time of one, that the store has not.

    Damaged epochs that were trained again have the values they had, at times of their own.
    """
    return not set(known) <= set(rows)


def _changed(known: Iterable[Row], rows: Iterable[Row]) -> list[Row]:
    """Return the rows of a summary that say something other than what MLflow shows."""
    shown = {row.name: row for row in sorted(known)}
    said = {(row.name, row.step, row.value) for row in shown.values()}
    return [row for row in rows if (row.name, row.step, row.value) not in said]


def _outranks(rows: Sequence[Row], known: Iterable[Row]) -> bool:
    """Return whether MLflow would go on showing something else once a summary is written.

    So it does when a seed is no longer stored, or when a study asks for fewer seeds than before.
    """
    kept = {row.name for row in rows}
    written = {row.name: row for row in _changed(known, rows)}
    return any(
        row.name not in kept or (row.name in written and row > written[row.name]) for row in known
    )


def _arm_outcome(outcomes: set[Outcome]) -> Outcome:
    """Return the outcome that decides for an arm."""
    if "failed" in outcomes:
        return "failed"
    if "diverged" in outcomes:
        return "diverged"
    return outcomes.pop() if len(outcomes) == 1 else "partial"


def _spelled(config: Config) -> dict[str, str]:
    """Return the params of a configuration, without where images lie: that may change."""
    flat = flatten(config)
    del flat["data.folder"]
    return {path: str(value) for path, value in flat.items() if value is not None}
