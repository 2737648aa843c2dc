"""TrackedRun: a run of a study as read from MLflow alone, through MLflow's client."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from mlflow import MlflowClient

from mixup_core.records import EpochRecord
from sweeps.machine.databases import database_file
from sweeps.state.results import Outcome
from sweeps.tracking.rows import SECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackedRun:
    """One run as recorded in MLflow."""

    arm: str
    seed: int
    run_key: str
    params: Mapping[str, str]
    """Values by dotted path, as from `flatten`, without None values and without paths that do not
    affect results, such as `data.folder`."""
    records: tuple[EpochRecord, ...]
    """One record per tracked epoch, epoch 0 first."""
    outcome: Outcome


def read_runs(uri: str, study: str) -> tuple[TrackedRun, ...]:
    """Return every run of a study from MLflow alone, by seed and arm; LookupError if it has none.

    Runs that have not started are not included. If a study was run with several settings, the runs
    of all of them are returned; their `params` differ.
    """
    database = database_file(uri)
    client = None if database is not None and not database.exists() else MlflowClient(uri)
    experiment = client and client.get_experiment_by_name(study)
    if client is None or experiment is None:
        raise LookupError(f"nothing is tracked of the study {study!r}")
    found = []
    for run in client.search_runs([experiment.experiment_id], "tags.level = 'seed'"):
        metrics: dict[int, dict[str, float]] = {}
        for name in run.data.metrics.keys() - {SECONDS}:
            for row in client.get_metric_history(run.info.run_id, name):
                assert name not in metrics.get(row.step, {}), "two rows at one step"
                metrics.setdefault(row.step, {})[name] = row.value
        tags = run.data.tags
        found.append(
            TrackedRun(
                arm=tags["arm"],
                seed=int(tags["seed"]),
                run_key=tags["run_key"],
                params=run.data.params,
                records=tuple(
                    EpochRecord(epoch=step - 1, metrics=metrics[step]) for step in sorted(metrics)
                ),
                outcome=cast("Outcome", tags["outcome"]),
            )
        )
    return tuple(sorted(found, key=lambda run: (run.seed, run.arm)))
