"""Experiment: what MLflow holds of a study, to be written by one driver and read by anyone.

The only module that imports MLflow. An experiment is a study. A run of level `config` is an arm,
its children of level `seed` are the runs of that arm, and one run of level `sweep` carries the
report. What is written, and when, is decided in `sweeps.tracking.projection`.
"""

import ast
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

# MLflow reads the first of these when it is imported. With its own seven retries one call would
# block for minutes; the outbox repeats instead.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.entities import Run as MlflowRun
from mlflow.exceptions import MlflowException

from mixup_core.records import EpochRecord
from sweeps.home import masked
from sweeps.results import Outcome
from sweeps.sqlite_files import alone, database_file

Level = Literal["sweep", "config", "seed"]
Status = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]

PARENT_TAG = "mlflow.parentRunId"
NOTE_TAG = "mlflow.note.content"
"""Markdown that MLflow shows when a run or an experiment is opened."""
MAX_TAG = 8000
"""Characters MLflow takes in a tag of a run."""

_PAGE = 1000
"""Runs asked for in one call."""
_NAMED_BY: Mapping[str, str] = {"sweep": "study", "config": "arm", "seed": "run_key"}
"""Level to the tag that names a run within its experiment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackedRun:
    """One run as MLflow knows it."""

    arm: str
    seed: int
    run_key: str
    params: Mapping[str, Any]
    """Dotted path to value, as `flatten` gives it, without `data.folder` and values of None."""
    records: tuple[EpochRecord, ...]
    """One per tracked epoch, epoch 0 first."""
    outcome: Outcome


def read_runs(uri: str, study: str) -> tuple[TrackedRun, ...]:
    """Return every run of a study from MLflow alone, in the order of `Study.runs`.

    Runs that were never started are among them (`missing`), so a table made from these runs knows
    how many seeds each arm should have. Runs of former versions of an arm are not.

    Args:
        uri: The tracking address.
        study: Name of the study.

    Raises:
        LookupError: If nothing is tracked under that name.
    """
    database = database_file(uri)
    client = _connect(uri) if database is None or database.exists() else None
    experiment = client and client.get_experiment_by_name(study)
    if client is None or experiment is None:
        raise LookupError(f"`the study is tracked` must hold, got ({study=}, uri={masked(uri)!r}).")
    found = list(_search(client, experiment.experiment_id))
    arms = {run.info.run_id for run in found if run.data.tags.get("level") == "config"}
    seeds = [run for run in found if run.data.tags.get(PARENT_TAG) in arms]
    seeds.sort(key=lambda run: int(run.data.tags["position"]))
    return tuple(_tracked_run(client, run) for run in seeds)


class Row(NamedTuple):
    """One value of a metric. MLflow's table shows the greatest row of each metric."""

    name: str
    step: int
    at_ms: int
    """Unix time in ms."""
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What a run in MLflow should be, its metrics apart."""

    level: Level
    name: str
    """Unique within the level: the study, the arm or the run key."""
    title: str
    """The run name that MLflow shows."""
    tags: Mapping[str, str]
    """Kept as they are here."""
    first_tags: Mapping[str, str]
    """Set when the run is created, never again."""
    params: Mapping[str, str] = field(default_factory=dict)
    started_at_ms: int | None = None
    """None: now."""


@dataclass(kw_only=True, slots=True)
class Entry:
    """What MLflow holds of one run; known here so that only what is missing is sent."""

    run_id: str
    status: str
    tags: dict[str, str]
    params: dict[str, str]
    metric_names: tuple[str, ...]
    rows: list[Row] | None
    """None until they are read (`Experiment.rows`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """The runs of one study in MLflow. Each method raises `MlflowException` when a call fails.

    After a failure nobody knows what arrived: open the experiment again.
    """

    client: MlflowClient
    experiment_id: str
    entries: dict[tuple[str, str], Entry]
    """By level and name; runs that somebody else put into the experiment are not among them."""

    @classmethod
    def open(
        cls, uri: str, name: str, *, artifact_location: str | None, tags: Mapping[str, str]
    ) -> "Experiment":
        """Return an experiment, created with its database if need be.

        Args:
            uri: The tracking address.
            name: Name of the experiment.
            artifact_location: Where artifacts go when the address is a database, for its default
                is the working directory of whoever creates it; None where a server decides.
            tags: Of the experiment.
        """
        client = _connect(uri)
        found = client.get_experiment_by_name(name)
        if found is None:
            created = client.create_experiment(name, artifact_location=artifact_location)
            found = client.get_experiment(created)
        elif found.lifecycle_stage == "deleted":
            client.restore_experiment(found.experiment_id)
        for tag, value in tags.items():
            if found.tags.get(tag) != value:
                client.set_experiment_tag(found.experiment_id, tag, value)
        entries: dict[tuple[str, str], Entry] = {}
        for run in _search(client, found.experiment_id):
            level = run.data.tags.get("level", "")
            if level not in _NAMED_BY:
                continue
            identity = (level, run.data.tags[_NAMED_BY[level]])
            if identity in entries:
                # Left by a call whose answer was lost: the run was there, and was created again.
                client.delete_run(run.info.run_id)
            else:
                entries[identity] = _entry(run)
        return cls(client=client, experiment_id=found.experiment_id, entries=entries)

    def bring(self, wanted: Wanted, is_stale: Callable[[list[Row]], bool] | None = None) -> Entry:
        """Find or create a run and bring its params and tags to what is wanted.

        Params and metrics cannot be changed (TRAP 27), so a run with other params or stale rows
        goes to MLflow's trash and a new one takes its place.

        Args:
            wanted: The run.
            is_stale: Judges the rows of a run that was found.
        """
        identity = (wanted.level, wanted.name)
        tags = {**wanted.tags, "level": wanted.level, _NAMED_BY[wanted.level]: wanted.name}
        entry = self.entries.get(identity)
        if entry is not None and (
            _conflict(entry.params, wanted.params)
            or (is_stale is not None and is_stale(self.rows(entry)))
        ):
            self.client.delete_run(entry.run_id)
            entry = None
        if entry is None:
            created = self.client.create_run(
                self.experiment_id,
                start_time=wanted.started_at_ms,
                tags={**wanted.first_tags, **tags},
                run_name=wanted.title,
            )
            entry = self.entries[identity] = _entry(created)
        self.write(entry, tags=tags, params=wanted.params)
        return entry

    def adopt(self, parent: Entry, children: Iterable[str]) -> None:
        """Make the runs of some keys, those that there are, children of an arm."""
        for key in children:
            if (entry := self.entries.get(("seed", key))) is not None:
                self.write(entry, tags={PARENT_TAG: parent.run_id})

    def drop_children(self, parent: Entry, keep: Collection[str]) -> None:
        """Move the runs of an arm to MLflow's trash whose run keys are not to be kept."""
        for identity, entry in list(self.entries.items()):
            if entry.tags.get(PARENT_TAG) == parent.run_id and identity[1] not in keep:
                self.client.delete_run(entry.run_id)
                del self.entries[identity]

    def rows(self, entry: Entry) -> list[Row]:
        """Return every row of every metric of a run."""
        if entry.rows is None:
            entry.rows = _read_rows(self.client, entry.run_id, entry.metric_names)
        return entry.rows

    def write(
        self,
        entry: Entry,
        *,
        rows: Sequence[Row] = (),
        tags: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> None:
        """Send rows, and the tags and params that are not there yet, in one call or none."""
        tags = {
            name: value for name, value in (tags or {}).items() if entry.tags.get(name) != value
        }
        params = {name: value for name, value in (params or {}).items() if name not in entry.params}
        if not (rows or tags or params):
            return
        self.client.log_batch(
            entry.run_id,
            metrics=[Metric(row.name, row.value, row.at_ms, row.step) for row in rows],
            params=[Param(*param) for param in params.items()],
            tags=[RunTag(*tag) for tag in tags.items()],
        )
        if entry.rows is not None:
            entry.rows.extend(rows)
        entry.metric_names = tuple({*entry.metric_names, *(row.name for row in rows)})
        entry.tags |= tags
        entry.params |= params

    def set_status(self, entry: Entry, status: Status, ended_at_ms: int | None = None) -> None:
        """Set the status of a run; an end without a time is now."""
        if entry.status == status:
            return
        if status == "RUNNING":
            self.client.update_run(entry.run_id, status=status)
        else:
            self.client.set_terminated(entry.run_id, status=status, end_time=ended_at_ms)
        entry.status = status

    def attach(self, entry: Entry, folder: Path) -> None:
        """Make every file of a folder an artifact of a run."""
        self.client.log_artifacts(entry.run_id, str(folder))


def is_refusal(error: Exception) -> bool:
    """Return whether MLflow was reached and will not have what it was sent."""
    refusals = {"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST"}
    return isinstance(error, MlflowException) and error.error_code in refusals


def parse_param(param: str) -> Any:
    """Return the value whose `str` is a param."""
    try:
        return ast.literal_eval(param)
    except (ValueError, SyntaxError):
        return param


def _connect(uri: str) -> MlflowClient:
    for name in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It warns of every retry; an outage is told once, by the outbox.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    with alone(database_file(uri)):
        return MlflowClient(tracking_uri=uri)


def _search(client: MlflowClient, experiment_id: str) -> Iterator[MlflowRun]:
    """Yield the runs of an experiment that are not in the trash, the oldest first."""
    token = None
    while True:
        page = client.search_runs(
            [experiment_id],
            max_results=_PAGE,
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        yield from page
        token = page.token
        if not token:
            return


def _entry(run: MlflowRun) -> Entry:
    metric_names = tuple(run.data.metrics)
    return Entry(
        run_id=run.info.run_id,
        status=run.info.status,
        tags=dict(run.data.tags),
        params=dict(run.data.params),
        metric_names=metric_names,
        rows=None if metric_names else [],
    )


def _read_rows(client: MlflowClient, run_id: str, names: Sequence[str]) -> list[Row]:
    return [
        Row(name, row.step, row.timestamp, row.value)
        for name in names
        for row in client.get_metric_history(run_id, name)
    ]


def _tracked_run(client: MlflowClient, run: MlflowRun) -> TrackedRun:
    metrics: dict[int, dict[str, float]] = {}
    for row in sorted(_read_rows(client, run.info.run_id, tuple(run.data.metrics))):
        metrics.setdefault(row.step, {})[row.name] = row.value
    tags = run.data.tags
    return TrackedRun(
        arm=tags["arm"],
        seed=int(tags["seed"]),
        run_key=tags["run_key"],
        params={path: parse_param(value) for path, value in run.data.params.items()},
        records=tuple(
            EpochRecord(epoch=epoch, metrics=metrics[epoch]) for epoch in sorted(metrics)
        ),
        outcome=tags["outcome"],
    )


def _conflict(params: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Return whether a run has a param that is not wanted, or wanted with another value."""
    return any(
        name not in wanted
        or (value != wanted[name] and parse_param(value) != parse_param(wanted[name]))
        for name, value in params.items()
    )
