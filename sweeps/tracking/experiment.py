"""Experiment: what MLflow holds of a study, to be written by one driver.

An experiment is a study. A run of level `config` is an arm, its children of level `seed` are the
runs of that arm, and one run of level `sweep` carries the report. What is written is decided in
`sweeps.tracking.projection`, when in `sweeps.tracking.tracker`.
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from sweeps.machine.databases import database_file
from sweeps.machine.sqlite_files import DatabaseError, alone
from sweeps.state.results import Outcome
from sweeps.tracking.database import (
    artifacts_beside,
    begin,
    blank_of,
    clear_metrics,
    keep_blank,
    relocate,
)
from sweeps.tracking.progress import Row
from sweeps.tracking.settings import refused_setting

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as MlflowRun

Level = Literal["sweep", "config", "seed"]
Status = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]

NAME_TAG = "mlflow.runName"
"""The name that MLflow shows of a run."""
PARENT_TAG = "mlflow.parentRunId"
NOTE_TAG = "mlflow.note.content"
"""Markdown that MLflow shows when a run or an experiment is opened."""
MODEL_TAG = "model"
"""Address of the trained network of a run, which `mlflow.pytorch.load_model` takes."""
STEP_TAG = "step"
"""Tag for the unit of steps in a seed's run: epochs trained, as everywhere else. Runs without it
are from when a step was the 0-based epoch, and stay so."""
OWNER_TAG = "mixsweep.store"
"""Tag for the owner of a run: the identity of the store it shows, or `HOME` in a database of one
home."""
HOME = "home"
MAX_TAG = 8000
"""Characters MLflow takes in a tag of a run."""

_PAGE = 1000
"""Runs asked for in one call."""
_DIGEST = 32
"""Characters of the digest of a data set; MLflow takes 36."""
_NAMED_BY: Mapping[str, tuple[str, ...]] = {
    "sweep": ("study", "config_id"),
    "config": ("arm", "config_id"),
    "seed": ("run_key",),
}
"""Level to the tags that tell its runs apart within an experiment."""
_OWN = {"run_key", "config_id"}
"""Tags that only runs of this program have."""
_NUMBER = re.compile(r"[0-9]{1,19}")

Identity = tuple[str, tuple[str, ...]]
"""Level and name of a run."""
Missing = Callable[[Sequence[Row]], Sequence[Row] | None]
"""Given the rows of a run in MLflow, which it lacks; None if some are there that must not be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The wanted state of a run in MLflow, without its metrics."""

    level: Level
    name: tuple[str, ...]
    """Unique within the level: study and configuration, arm and configuration, or the run key."""
    tags: Mapping[str, str]
    """Kept as they are here."""
    first_tags: Mapping[str, str]
    """Set when the run is created, until `tags` are written; nothing else sets them again."""
    params: Mapping[str, str] = field(default_factory=dict)
    """Set where they are not there yet: MLflow changes none."""
    started_at_ms: int | None = None
    """Start of the run; None: now."""

    @property
    def identity(self) -> Identity:
        """Level and name."""
        return self.level, self.name

    @property
    def created_tags(self) -> Mapping[str, str]:
        """The tags of a new run."""
        steps = {STEP_TAG: "epochs trained"} if self.level == "seed" else {}
        return {**self.all_tags, **self.first_tags, **steps}

    @property
    def all_tags(self) -> Mapping[str, str]:
        """The tags with those that name the run."""
        names = dict(zip(_NAMED_BY[self.level], self.name, strict=True))
        return {**self.tags, **names, "level": self.level}


@dataclass(kw_only=True, slots=True)
class LoggedRun:
    """The state of one run in MLflow, known here so that only missing parts are sent."""

    run_id: str
    status: str
    tags: dict[str, str]
    params: dict[str, str]
    metric_names: tuple[str, ...]
    data_digests: tuple[str, ...]
    """Digests of the data sets that are logged as inputs of the run."""
    rows: list[Row] | None
    """Logged rows; None until they are read (`Experiment.rows`)."""

    @property
    def level(self) -> str:
        """Level of the run; empty if another program created it."""
        return self.tags.get("level", "")

    @property
    def identity(self) -> Identity:
        """Identity of the run; its `config_id` is empty if it was written when none was."""
        return self.level, tuple(self.tags.get(tag, "") for tag in _NAMED_BY[self.level])

    def is_of(self, owner: str | None) -> bool:
        """Return whether it was written for an owner, None: for any, whatever became of it since.

        A run from before owners had names has tags that no run has which somebody else wrote.
        """
        if OWNER_TAG in self.tags:
            return owner in {None, self.tags[OWNER_TAG]}
        return not _OWN.isdisjoint(self.tags)

    @property
    def is_whole(self) -> bool:
        """True if it still has every tag that says what it is; others are written again."""
        match self.level:
            case "seed":
                numbers = [self.tags.get(name, "") for name in ("seed", "position")]
                is_known = self.tags.get("outcome") in get_args(Outcome)
                names = self.tags.get("run_key") and self.tags.get("arm")
                return bool(names) and is_known and all(map(_NUMBER.fullmatch, numbers))
            case "config":
                return bool(self.tags.get("arm"))
            case "sweep":
                return bool(self.tags.get("study"))
            case _:
                return False

    @property
    def first_step(self) -> int:
        """The step in MLflow at which one epoch is trained."""
        return 0 if self.level == "seed" and STEP_TAG not in self.tags else 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """The runs of one study in MLflow. Each method raises `MlflowException` when a call fails.

    After a failure nobody knows what arrived: open the experiment again.
    """

    client: "MlflowClient"
    experiment_id: str
    tags: dict[str, str]
    entries: dict[Identity, LoggedRun]
    """Each has its own tags. Runs that other programs put into the experiment are left out."""
    is_deleted: bool = False
    """True if it was found in MLflow's trash."""
    owner: str = HOME
    """Owner of the runs in `entries`."""
    stray: Sequence[LoggedRun] = ()
    """Runs of ours that stand for nothing: there once more, for the answer to a call was lost and
    it was repeated; or they lost the tags that say what they are."""

    @classmethod
    def find(cls, uri: str, name: str, owner: str | None = HOME) -> "Experiment | None":
        """Return an experiment as it is; None if there is none. Nothing is created.

        Args:
            uri: The tracking address.
            name: Name of the experiment.
            owner: Whose runs in it are looked at; None: those of all.
        """
        database = database_file(uri)
        if database is not None and not database.exists():
            return None
        client = _connect(uri)
        found = client.get_experiment_by_name(name)
        if found is None:
            return None
        _require_name(found.name, name)
        entries: dict[Identity, LoggedRun] = {}
        stray = []
        for run in _search(client, found.experiment_id):
            entry = _entry(run)
            if not entry.is_of(owner):
                continue
            is_first = entry.is_whole and entries.setdefault(entry.identity, entry) is entry
            if not is_first and (owner == HOME or OWNER_TAG in entry.tags):
                stray.append(entry)
        return cls(
            client=client,
            experiment_id=found.experiment_id,
            is_deleted=found.lifecycle_stage == "deleted",
            tags=dict(found.tags),
            entries=entries,
            owner=owner or HOME,
            stray=stray,
        )

    @classmethod
    def open(
        cls, uri: str, name: str, *, artifact_location: str | None, owner: str = HOME
    ) -> "Experiment":
        """Return an experiment to write to, created with its database if need be.

        Args:
            uri: The tracking address.
            name: Name of the experiment.
            artifact_location: Where artifacts go when the address is a database, for its default
                is the working directory of whoever creates it; None where a server decides.
            owner: Whose runs are written.
        """
        database = database_file(uri)
        if database is not None and artifact_location == artifacts_beside(database):
            relocate(database)
        opened = cls.find(uri, name, owner)
        if opened is None:
            client = _connect(uri)
            created = client.create_experiment(name, artifact_location=artifact_location)
            _require_name(client.get_experiment(created).name, name)
            return cls(client=client, experiment_id=created, tags={}, entries={}, owner=owner)
        if opened.is_deleted:
            opened.client.restore_experiment(opened.experiment_id)
        for entry in opened.stray:
            opened.client.delete_run(entry.run_id)
        return opened

    def tag(self, tags: Mapping[str, str]) -> None:
        """Set tags of the experiment that are not there yet."""
        for name, value in tags.items():
            if self.tags.get(name) != value:
                self.client.set_experiment_tag(self.experiment_id, name, value)
                self.tags[name] = value

    def bring(self, wanted: Wanted, missing: Missing | None = None) -> LoggedRun:
        """Find or create a run and bring it to what is wanted.

        Metrics cannot be changed, so a run with rows that must not be there goes to MLflow's trash
        and a new one takes its place.

        Args:
            wanted: The run.
            missing: Says what is to be added to the rows that the run has; None: nothing.
        """
        entry = self.entries.get(wanted.identity)
        rows: Sequence[Row] | None = ()
        if entry is not None and missing is not None:
            rows = missing(self.rows(entry))
            if rows is None:
                if self.owner == HOME or OWNER_TAG in entry.tags:
                    self.drop(entry)
                else:  # it may show another store
                    del self.entries[entry.identity]
                entry = None
        if entry is None:
            created = self.client.create_run(
                self.experiment_id,
                start_time=wanted.started_at_ms,
                tags={**wanted.created_tags, OWNER_TAG: self.owner},
            )
            _require_name(created.info.experiment_id, self.experiment_id)
            entry = self.entries[wanted.identity] = _entry(created)
            rows = missing(()) if missing is not None else ()
        tags = {**wanted.all_tags, OWNER_TAG: self.owner}
        self.write(entry, rows=rows or (), tags=tags, params=wanted.params)
        return entry

    def rename(self, entry: LoggedRun, name: tuple[str, ...]) -> None:
        """Let a run stand for something else of its level."""
        del self.entries[entry.identity]
        self.write(entry, tags=dict(zip(_NAMED_BY[entry.level], name, strict=True)))
        self.entries[entry.identity] = entry

    def clear(self, entry: LoggedRun) -> None:
        """Take all metrics from a run, where the database is a file; elsewhere they stay."""
        database = database_file(self.client.tracking_uri)
        if database is not None:
            clear_metrics(database, entry.run_id)
            entry.metric_names, entry.rows = (), []

    def children(self, parent: LoggedRun) -> list[LoggedRun]:
        """Return the runs of an arm."""
        runs = (entry for entry in self.entries.values() if entry.level == "seed")
        return [entry for entry in runs if entry.tags.get(PARENT_TAG) == parent.run_id]

    def drop(self, entry: LoggedRun) -> None:
        """Move a run to MLflow's trash."""
        self.client.delete_run(entry.run_id)
        del self.entries[entry.identity]

    def rows(self, entry: LoggedRun) -> list[Row]:
        """Return every row of every metric of a run."""
        if entry.rows is None:
            entry.rows = [
                Row(name, row.step + 1 - entry.first_step, row.timestamp, row.value)
                for name in entry.metric_names
                for row in self.client.get_metric_history(entry.run_id, name)
            ]
        return entry.rows

    def write(
        self,
        entry: LoggedRun,
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
        from mlflow.entities import Metric, Param, RunTag

        self.client.log_batch(
            entry.run_id,
            metrics=[
                Metric(row.name, row.value, row.at_ms, row.step - 1 + entry.first_step)
                for row in rows
            ],
            params=[Param(*param) for param in params.items()],
            tags=[RunTag(*tag) for tag in tags.items()],
        )
        if entry.rows is not None:
            entry.rows.extend(rows)
        entry.metric_names = tuple({*entry.metric_names, *(row.name for row in rows)})
        entry.tags |= tags
        entry.params |= params

    def set_status(self, entry: LoggedRun, status: Status, ended_at_ms: int | None = None) -> None:
        """Set the status of a run; an end without a time is now."""
        if entry.status == status:
            return
        if status == "RUNNING":
            self.client.update_run(entry.run_id, status=status)
        else:
            self.client.set_terminated(entry.run_id, status=status, end_time=ended_at_ms)
        entry.status = status

    def tell_data(self, entry: LoggedRun, name: str, checksums: Mapping[str, str]) -> None:
        """Say which files a run was trained on.

        Args:
            entry: The run.
            name: Name of the data set.
            checksums: File to checksum.
        """
        from mlflow.entities import Dataset, DatasetInput, InputTag

        source = json.dumps({"tags": dict(checksums)}, sort_keys=True)
        digest = hashlib.sha256(source.encode()).hexdigest()[:_DIGEST]
        if digest not in entry.data_digests:
            dataset = Dataset(name=name, digest=digest, source_type="code", source=source)
            context = InputTag("mlflow.data.context", "training and evaluation")
            self.client.log_inputs(entry.run_id, [DatasetInput(dataset, [context])])
            entry.data_digests = (*entry.data_digests, digest)

    def log_model(self, entry: LoggedRun, described: Any, folder: Path) -> None:
        """Give a run a model, under the tag `model`.

        It becomes ready before the run says that it has it. What an attempt that was interrupted
        has left is adopted if it is ready, and goes if it is not.

        Args:
            entry: The run.
            described: MLflow's description of it (`sweeps.tracking.networks`).
            folder: Its files.
        """
        from mlflow.entities import LoggedModelOutput, LoggedModelStatus

        left = self.client.search_logged_models(
            [self.experiment_id], filter_string=f"source_run_id = '{entry.run_id}'"
        )
        ready = [model.model_id for model in left if model.status == LoggedModelStatus.READY]
        for model in left:
            if model.model_id not in ready[:1]:
                self.client.delete_logged_model(model.model_id)
        model_id = ready[0] if ready else self._upload(entry, described, folder)
        outputs = self.client.get_run(entry.run_id).outputs
        if model_id not in {output.model_id for output in outputs.model_outputs}:
            self.client.log_outputs(entry.run_id, [LoggedModelOutput(model_id, step=0)])
        self.write(entry, tags={MODEL_TAG: f"models:/{model_id}"})

    def _upload(self, entry: LoggedRun, described: Any, folder: Path) -> str:
        """Return the identity of a new model, ready."""
        logged = self.client.create_logged_model(
            self.experiment_id, name="model", source_run_id=entry.run_id
        )
        described.model_id, described.run_id = logged.model_id, entry.run_id
        described.save(str(folder / "MLmodel"))
        self.client.log_model_artifacts(logged.model_id, str(folder))
        self.client.finalize_logged_model(logged.model_id, "READY")
        model_id: str = logged.model_id
        return model_id

    def attach(self, entry: LoggedRun, folder: Path) -> None:
        """Make every file of a folder an artifact of a run."""
        self.client.log_artifacts(entry.run_id, str(folder))


def load() -> None:
    """Import MLflow, in this thread: where two import at once, each may meet half of a package.

    Raises:
        DatabaseError: If it refuses a variable of the environment.
    """
    if reason := refused_setting():
        raise DatabaseError(f"MLflow refuses its settings: {reason}; correct or unset it")


def experiments(uri: str) -> dict[str, tuple[str, Mapping[str, str]]]:
    """Return identity and tags of each experiment by name; empty without a database."""
    database = database_file(uri)
    if database is not None and not database.exists():
        return {}
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    token = None
    client = _connect(uri)
    while True:
        page = client.search_experiments(max_results=_PAGE, page_token=token)
        found |= {one.name: (one.experiment_id, dict(one.tags)) for one in page}
        token = page.token
        if not token:
            return dict(sorted(found.items()))


class NotMlflowError(Exception):
    """Error: the server at a tracking address is not MLflow."""


def is_refusal(error: Exception) -> bool:
    """Return whether MLflow was reached and will not have what it was sent."""
    from mlflow.exceptions import MlflowException

    if isinstance(error, NotMlflowError):
        return True
    refusals = {"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST"}
    is_nonsense = "not in a valid JSON format" in str(error)
    if not isinstance(error, MlflowException):
        return False
    return is_nonsense or error.error_code in refusals


def _require_name(found: str, wanted: str) -> None:
    """Check an answer of a server: many programs answer 200 to whatever they are asked.

    Raises:
        NotMlflowError: If it is not what an MLflow server answers.
    """
    if found != wanted:
        raise NotMlflowError(
            f"what answers there is no MLflow server: {wanted!r} was expected, got {found!r}"
        )


def _connect(uri: str) -> "MlflowClient":
    import mlflow
    from mlflow import MlflowClient

    for name in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It warns of every retry; an outage is told once, by the outbox.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    database, blank = database_file(uri), blank_of(mlflow.__version__)
    with alone(database):
        is_made = database is not None and begin(database, blank)
        client = MlflowClient(tracking_uri=uri)
        if database is not None and is_made:
            keep_blank(database, blank)
    return client


def _search(client: "MlflowClient", experiment_id: str) -> "Iterator[MlflowRun]":
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


def _entry(run: "MlflowRun") -> LoggedRun:
    metric_names = tuple(run.data.metrics)
    return LoggedRun(
        run_id=run.info.run_id,
        status=run.info.status,
        tags=dict(run.data.tags),
        params=dict(run.data.params),
        metric_names=metric_names,
        data_digests=tuple(data.dataset.digest for data in run.inputs.dataset_inputs),
        rows=None if metric_names else [],
    )
