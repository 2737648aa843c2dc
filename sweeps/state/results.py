"""Results: what the store has of each run: epochs, progress, and the reason of an early end."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from mixup_core.keys import run_key, stage_keys
from mixup_core.records import Records
from mixup_core.store.checkpoints import Store
from mixup_core.store.json_records import LATEST_MS
from mixup_core.store.manifests import ADDED, Facts, Failure, Stage
from sweeps.study.budget import Spending
from sweeps.study.study import Run, Study

if TYPE_CHECKING:
    from mixup_core.predictions import Predictions


_NO_RECORDS, _NO_FACTS = Records(), Facts()

Outcome = Literal["complete", "partial", "missing", "diverged", "failed"]

# Frozen: this key in stored stages, and the form of its value. Attempts of earlier launches would
# not be counted; tests/sweeps/state/test_results.py fails.
TRIED = "tried"
"""Key in the environment of a stage; its value is the key of the run that trained it and the number
of the attempt."""


def trained_by(stage: Stage) -> tuple[str, int]:
    """Return the key of the run that trained a stage, empty if not recorded, and its attempt."""
    match = re.fullmatch(r"([0-9a-f]{4,64}) ([1-9][0-9]{0,8})", stage.environment.get(TRIED, ""))
    return (match[1], int(match[2])) if match else ("", 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Addition:
    """The archive from which `mixsweep add` brought a stage that was not trained here."""

    archive: str
    """sha256 of the archive; empty if the record is damaged."""
    at_ms: int
    """Unix time in ms at which it was added."""
    by: str
    """User and host that added it."""

    @classmethod
    def of(cls, stage: Stage) -> Self | None:
        """Return the origin of a stage; None if it was trained in this store."""
        if ADDED not in stage.environment:
            return None
        match = re.fullmatch(r"([0-9a-f]{64}) ([0-9]{1,15}) (.*)", stage.environment[ADDED])
        if match is None or int(match[2]) > LATEST_MS:
            return cls(archive="", at_ms=0, by="unknown")
        return cls(archive=match[1], at_ms=int(match[2]), by=match[3])

    def __str__(self) -> str:
        """Return the entry of a stage's environment that records this addition."""
        return f"{self.archive} {self.at_ms} {self.by}"


def spell_added(runs: int, archives: Iterable[str]) -> str:
    """Return, as text, how many runs came from archives, such as `1 of 6 runs added from ...`."""
    added = list(archives)
    if not added:
        return ""
    names = sorted({f"(sha256 {archive[:12]})" for archive in added})
    which = f"an archive {names[0]}" if len(names) == 1 else f"{len(names)} archives"
    return f"{len(added)} of {runs} runs added from {which}"


def last_attempt(stage: Stage, run_key: str | None = None) -> int:
    """Return the number of the attempt that trained a stage, counted from 1; 1 if not recorded."""
    key, number = trained_by(stage)
    return number if run_key in {None, key} else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """A run of a study with everything that is stored about it."""

    run: Run
    stage: Stage | None
    """The stored stage with the most epochs; None if no epoch is stored."""
    failure: Failure | None
    """The failure that ended the run early; None if it did not fail."""

    @property
    def records(self) -> Records:
        return _NO_RECORDS if self.stage is None else self.stage.records

    @property
    def facts(self) -> Facts:
        return _NO_FACTS if self.stage is None else self.stage.facts

    @property
    def addition(self) -> Addition | None:
        """Origin of the stored epochs; None if they were trained in this store."""
        return None if self.stage is None else Addition.of(self.stage)

    @property
    def outcome(self) -> Outcome:
        """`complete`, `failed`, `diverged`, `partial` (some epochs are stored) or `missing`."""
        if len(self.records) == self.run.config.epochs:
            return "complete"
        if self.failure is not None:
            return self.failure.kind
        return "partial" if self.records else "missing"

    @property
    def attempts(self) -> int:
        """Known number of attempts at this run; one that stored nothing may not be counted."""
        if self.outcome == "complete" and self.stage is not None:
            return last_attempt(self.stage)
        begun = 0 if self.stage is None else last_attempt(self.stage, self.run.key)
        return begun if self.failure is None else max(begun, self.failure.attempts)


def read_results(runs: Iterable[Run], store: Store) -> tuple[RunResult, ...]:
    runs = tuple(runs)
    stored = store.keys()
    failures = failures_of(runs, store)
    listed = [[key for key in reversed(stage_keys(run.config)) if key in stored] for run in runs]
    deepest = store.read_all(keys[0] for keys in listed if keys)
    results = []
    for run, keys in zip(runs, listed, strict=True):
        # A damaged stage counts as missing; the one before it is read instead.
        sound = (stage for key in keys if (stage := deepest.get(key) or store.read(key)))
        failure = failures.get(run.key) if failures else None  # keys are slow to compute
        results.append(RunResult(run=run, stage=next(sound, None), failure=failure))
    return tuple(results)


def judged_of(study: Study, results: Sequence[RunResult]) -> tuple[Study, Sequence[RunResult]]:
    """Return the study on which claims are judged, and its results: a search's confirmation.

    Both are unchanged without a confirmation. Before it began, it has no results.
    """
    judged, originals = study.judged(), study.confirmed()
    if judged is study:
        return study, results
    return judged, [
        replace(result, run=replace(result.run, arm=originals[result.run.arm]))
        for result in results
        if result.run.arm in originals
    ]


def added_runs(results: Sequence[RunResult]) -> str:
    """Return, as text, how many of a study's runs were added from archives; empty if none was."""
    origins = [result.addition for result in results]
    return spell_added(len(origins), [origin.archive for origin in origins if origin is not None])


def sound_stages(results: Iterable[RunResult]) -> frozenset[str]:
    """Return the keys of stages that were just read, so that they need no second check."""
    return frozenset(result.stage.key for result in results if result.stage is not None)


def spending_of(results: Iterable[RunResult]) -> Spending:
    spending = Spending()
    spending.add(result.stage for result in results)
    return spending


def begun_seeds(results: Iterable[RunResult]) -> set[int]:
    """Return the seeds at which at least one run has stored an epoch or a failure."""
    return {result.run.seed for result in results if result.outcome != "missing"}


def ended_on_budget(study: Study, results: Iterable[RunResult]) -> str | None:
    """Return which limit ended a study: `used up its budget of 2 runs, after 2 of 3 runs`.

    None if each seed has begun, or a begun one is open.
    """
    results = tuple(results)
    seeds = begun_seeds(results)
    begun = [result for result in results if result.run.seed in seeds]
    is_open = any(result.outcome not in {"complete", "diverged"} for result in begun)
    if is_open or len(begun) == len(results) or not study.budget.limits:
        return None
    spending = spending_of(results)
    reason = study.budget.exceeded(spending.hours, spending.gpu_hours, len(begun))
    return None if reason is None else f"{reason}, after {len(begun)} of {len(results)} runs"


def read_predictions(
    results: Sequence[RunResult], store: Store
) -> "tuple[Predictions | None, ...]":
    """Return the stored predictions of each run; None for a run that is incomplete or has none."""
    records = {
        result.stage.key: result.records[-1]
        for result in results
        if result.stage is not None and result.outcome == "complete"
    }
    contents = store.predictions.read_all(records)
    return tuple(
        None if result.stage is None else parsed_predictions(contents.get(result.stage.key))
        for result in results
    )


def parsed_predictions(content: bytes | None) -> "Predictions | None":
    """Return parsed predictions; None if there are none or they are damaged."""
    from mixup_core.predictions import Predictions, PredictionsError

    if content is None:
        return None
    try:
        return Predictions.from_bytes(content)
    except PredictionsError:
        return None


def failures_of(runs: Iterable[Run], store: Store) -> Mapping[str, Failure]:
    """Return failures by run key; a run whose teacher diverged counts as diverged.

    A run that diverged here, but is stored whole, for example from an archive, is finished.
    """
    if not (listed := store.failures.keys()):
        return {}  # the usual case; keys are slow to compute
    by_key = {run.key: run for run in runs}
    teachers = {run_key(run.teacher) for run in by_key.values() if run.teacher is not None}
    failures = store.failures.read_all(listed & (by_key.keys() | teachers))
    if all(failure.kind != "diverged" for failure in failures.values()):
        return failures
    stored = store.keys()
    whole = {key for key, run in by_key.items() if stage_keys(run.config)[-1] in stored}

    def of_teachers(run: Run) -> Failure | None:
        if run.teacher is None or stage_keys(run.teacher)[-1] in stored:
            return None
        key = run_key(run.teacher)
        if (failure := failures.get(key)) is not None and failure.kind == "diverged":
            return failure
        return of_teachers(by_key[key]) if key in by_key else None

    taken_over = {
        key: Failure(
            run_key=key,
            kind="diverged",
            message=f"the teacher of this run diverged: {failure.message}",
            epoch=None,
            attempts=0,
        )
        for key, run in by_key.items()
        if key not in whole and (failure := of_teachers(run)) is not None
    }
    return {key: failures[key] for key in failures.keys() - whole} | taken_over


def diverged(failures: Mapping[str, Failure]) -> frozenset[str]:
    return frozenset(key for key, failure in failures.items() if failure.kind == "diverged")
