"""RunResult: what a study's runs have reached so far, read from the store alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, Failure, Stage
from sweeps.failures import failures_of
from sweeps.study import Run

if TYPE_CHECKING:
    from mixup_core.predictions import Predictions

Outcome = Literal["complete", "partial", "missing", "diverged", "failed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """One run of a study with everything stored of it."""

    run: Run
    stage: Stage | None
    """The deepest stored stage; None if no epoch is stored."""
    failure: Failure | None
    """Why the run ended early, if it did and is not complete."""

    @property
    def records(self) -> tuple[EpochRecord, ...]:
        """One record per stored epoch, epoch 0 first."""
        return () if self.stage is None else self.stage.records

    @property
    def facts(self) -> tuple[EpochFacts, ...]:
        """Seconds and time of storing of each stored epoch."""
        return () if self.stage is None else self.stage.facts

    @property
    def outcome(self) -> Outcome:
        """`complete` only with every epoch stored; else failed, diverged, partial or missing."""
        if len(self.records) == self.run.config.epochs:
            return "complete"
        if self.failure is not None:
            return self.failure.kind
        return "partial" if self.records else "missing"


def read_results(runs: Iterable[Run], store: Store) -> tuple[RunResult, ...]:
    """Return the result of each run, in the order given, from the store alone."""
    runs = tuple(runs)
    stored = store.keys()
    failures = failures_of(runs, store)
    listed = [[key for key in reversed(stage_keys(run.config)) if key in stored] for run in runs]
    deepest = store.read_all(keys[0] for keys in listed if keys)
    results = []
    for run, keys in zip(runs, listed, strict=True):
        # A damaged stage is absent; the one before it is looked for then.
        sound = (stage for key in keys if (stage := deepest.get(key) or store.read(key)))
        failure = failures.get(run.key) if failures else None  # a key takes long to make
        results.append(RunResult(run=run, stage=next(sound, None), failure=failure))
    return tuple(results)


def read_predictions(result: RunResult, store: Store) -> "Predictions | None":
    """Return what a complete run predicts; None if it left nothing, or nothing that is sound."""
    from mixup_core.predictions import Predictions, PredictionsError

    if result.stage is None or result.outcome != "complete":
        return None
    content = store.predictions.read(result.stage.key, result.records[-1])
    if content is None:
        return None
    try:
        return Predictions.from_bytes(content)
    except PredictionsError:
        return None
