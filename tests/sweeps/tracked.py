"""A study of two arms as it is logged, and the content of MLflow for it."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from mixup_core.images.config import TrainConfig
from mixup_core.keys import stage_key
from mixup_core.records import EpochRecord
from mixup_core.store.manifests import EpochFacts, Failure, Stage
from sweeps.machine.home import Home
from sweeps.state.results import RunResult
from sweeps.study.study import Run, Study
from sweeps.tracking.rows import RunProgress
from sweeps.tracking.study_log import StudyLog

ERM = TrainConfig(epochs=3, batch_size=10)
NOON_MS = 1_700_000_000_000


def summarise(runs: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    return {f"{name}_mean": statistics.fmean(run[name] for run in runs) for name in runs[0]}


def log_of(study: Study, home: Path, **named: Any) -> StudyLog:
    return StudyLog(
        study,
        Home(folder=home).tracking_uri,
        summariser=lambda study, arm: summarise,
        artifact_location=Home(folder=home).artifact_location,
        tags={"commit": "abc1234"},
        **named,
    )


def write(log: StudyLog, results: Sequence[RunResult]) -> None:
    """Update MLflow with results; for each arm among them, these are all its results."""
    for result in results:
        log.write_run(RunProgress.stored(result))
    for arm in dict.fromkeys(result.run.arm for result in results):
        of_arm = [RunProgress.stored(result) for result in results if result.run.arm == arm]
        log.write_arm(arm, of_arm)


def epoch_of(run: Run, epoch: int) -> tuple[EpochRecord, EpochFacts]:
    """Return metrics that differ between all runs and epochs and have no short decimal form."""
    unit = 1 / (3 + epoch + 10 * run.seed + 100 * len(run.arm))
    record = EpochRecord(epoch=epoch, metrics={"train/loss": unit, "test/error": unit / 7})
    return record, EpochFacts(seconds=1.5, stored_at_ms=NOON_MS + 1000 * epoch + run.seed)


def result_of(run: Run, epochs: int, failure: Failure | None = None) -> RunResult:
    if epochs == 0:
        return RunResult(run=run, stage=None, failure=failure)
    pairs = [epoch_of(run, epoch) for epoch in range(epochs)]
    stage = Stage(
        key=stage_key(run.config, epochs),
        records=tuple(record for record, _ in pairs),
        facts=tuple(facts for _, facts in pairs),
        environment={"torch": "2.14.1"},
        state=None,
    )
    return RunResult(run=run, stage=stage, failure=failure)


def results_of(study: Study, *epochs: int) -> tuple[RunResult, ...]:
    """Return results with a number of stored epochs per run, in the order of `Study.runs`."""
    return tuple(map(result_of, study.runs(), epochs))


def at_level(study: Study, client: MlflowClient, level: str) -> list[Any]:
    experiment = client.get_experiment_by_name(study.name)
    if experiment is None:
        return []
    return list(client.search_runs([experiment.experiment_id], f"tags.level = '{level}'"))


def runs_of(study: Study, client: MlflowClient, level: str) -> dict[str, Any]:
    """Return MLflow's runs of one level, by arm and run name."""
    found = at_level(study, client, level)
    return {f"{run.data.tags['arm']} {run.info.run_name}": run for run in found}


def content_of(study: Study, client: MlflowClient) -> set[tuple[Any, ...]]:
    """Return what MLflow has of a study; no metric may have two rows at one step."""
    content: set[tuple[Any, ...]] = set()
    experiment = client.get_experiment_by_name(study.name)
    for run in client.search_runs([experiment.experiment_id]):
        key = run.info.run_id
        content |= {(key, run.info.status, run.info.end_time)}
        content |= {(key, *item) for item in (*run.data.params.items(), *run.data.tags.items())}
        for name in run.data.metrics:
            rows = client.get_metric_history(key, name)
            content |= {(key, name, row.step, row.timestamp, row.value) for row in rows}
            assert len(rows) == len({row.step for row in rows}), "two rows at one step"
    return content
