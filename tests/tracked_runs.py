"""TrackedRun: a run of a study as read from MLflow alone."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mixup_core.records import EpochRecord
from sweeps.machine.databases import database_address
from sweeps.state.results import Outcome
from sweeps.tracking.experiment import Experiment
from sweeps.tracking.logged_run import PARENT_TAG, LoggedRun
from sweeps.tracking.progress import epochs_of


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackedRun:
    """One run as recorded in MLflow."""

    arm: str
    seed: int
    run_key: str
    params: Mapping[str, Any]
    """Values by dotted path, as from `flatten`, without None values and without paths that do not
    affect results, such as `data.folder`."""
    records: tuple[EpochRecord, ...]
    """One record per tracked epoch, epoch 0 first."""
    outcome: Outcome


def read_runs(uri: str, study: str) -> tuple[TrackedRun, ...]:
    """Return every run of a study from MLflow alone.

    Runs that have not started are not included. Runs of one configuration have the order of
    `Study.runs`. If a study was run with several settings, the runs of all of them are returned;
    their `params` differ.

    Args:
        uri: The tracking address.
        study: Name of the study.

    Raises:
        LookupError: If MLflow has no study with that name.
    """
    experiment = Experiment.find(uri, study, owner=None)
    if experiment is None:
        raise LookupError(f"{database_address(uri)}: nothing is tracked of the study {study!r}")
    entries = experiment.entries.values()
    arms = {entry.run_id for entry in entries if entry.level == "config"}
    seeds = [entry for entry in entries if entry.tags.get(PARENT_TAG) in arms]
    seeds.sort(key=lambda entry: int(entry.tags["position"]))
    return tuple(_tracked_run(experiment, entry) for entry in seeds)


def parse_param(param: str) -> Any:
    """Convert an MLflow param, which was written with `str(value)`, back to the value."""
    try:
        return ast.literal_eval(param)
    except (ValueError, SyntaxError):
        return param


def _tracked_run(experiment: Experiment, entry: LoggedRun) -> TrackedRun:
    return TrackedRun(
        arm=entry.tags["arm"],
        seed=int(entry.tags["seed"]),
        run_key=entry.tags["run_key"],
        params={path: parse_param(value) for path, value in entry.params.items()},
        records=tuple(record for record, _ in epochs_of(experiment.rows(entry))),
        outcome=cast("Outcome", entry.tags["outcome"]),
    )
