"""Reader: the runs of a study as MLflow alone knows them."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mixup_core.records import EpochRecord
from sweeps.machine.databases import database_address
from sweeps.state.results import Outcome
from sweeps.tracking.experiment import PARENT_TAG, Experiment, LoggedRun
from sweeps.tracking.progress import epochs_of


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackedRun:
    """One run as MLflow knows it."""

    arm: str
    seed: int
    run_key: str
    params: Mapping[str, Any]
    """Dotted path to value, as `flatten` gives it, without paths that change no number, such as
    `data.folder`, and values of None."""
    records: tuple[EpochRecord, ...]
    """One per tracked epoch, epoch 0 first."""
    outcome: Outcome


def read_runs(uri: str, study: str) -> tuple[TrackedRun, ...]:
    """Return every run of a study from MLflow alone.

    Runs that never began are not among them. Those of one configuration are in the order of
    `Study.runs`; a study that was run with several settings has the runs of all of them, which
    `params` tells apart.

    Args:
        uri: The tracking address.
        study: Name of the study.

    Raises:
        LookupError: If nothing is tracked under that name.
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
    """Return the value whose `str` is a param."""
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
