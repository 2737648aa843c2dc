"""Experiment: read and write the runs of one study in MLflow.

Each study is an experiment in MLflow. In this experiment, an arm is a run of level `config`, the
runs of the arm are child runs of level `seed`, and one run of level `sweep` has the report.
`sweeps.tracking.projection` decides what is written, and `sweeps.tracking.tracker` decides when.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeps.machine.databases import database_file
from sweeps.tracking.connection import ForeignExperimentError, connect, require_name
from sweeps.tracking.database import artifacts_beside, clear_metrics, relocate
from sweeps.tracking.logged_run import (
    HOME,
    MODEL_TAG,
    NAMED_BY,
    OWNER_TAG,
    PARENT_TAG,
    Identity,
    LoggedRun,
    Status,
    Wanted,
    logged_run,
)
from sweeps.tracking.ownership import is_foreign, logged_runs
from sweeps.tracking.progress import Row

if TYPE_CHECKING:
    from mlflow import MlflowClient


_DIGEST = 32
"""Number of characters of a dataset's digest; MLflow accepts up to 36."""

Missing = Callable[[Sequence[Row]], Sequence[Row] | None]
"""Function from the rows of a run in MLflow to the rows to add; None if MLflow has wrong rows, so
that the run must be created again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """Reads and writes the runs of one study in MLflow; raises `MlflowException` if MLflow fails.

    After such an error it is unknown which data MLflow has stored: open the experiment again.
    """

    client: "MlflowClient"
    experiment_id: str
    tags: dict[str, str]
    entries: dict[Identity, LoggedRun]
    """Runs that mixsweep wrote, by level and name; runs of other programs are left out."""
    is_deleted: bool = False
    """True if the experiment was in MLflow's trash."""
    is_foreign: bool = False
    """True if the experiment has runs, and neither a run of mixsweep nor its tags."""
    owner: str = HOME
    """Owner of the runs in `entries` (see `OWNER_TAG`)."""
    stray: Sequence[LoggedRun] = ()
    """Runs of mixsweep to delete: duplicates, and runs without the tags that describe them. A
    duplicate arises if the answer of MLflow is lost and the call is repeated."""

    @classmethod
    def find(cls, uri: str, name: str, owner: str | None = HOME) -> "Experiment | None":
        """Return an existing MLflow experiment with its runs; None if MLflow has none of this name.

        Args:
            uri: The tracking address.
            name: Name of the experiment.
            owner: Store whose runs are read: its id, or `HOME` if MLflow's database belongs to a
                single home; None for the runs of all stores.
        """
        database = database_file(uri)
        if database is not None and not database.exists():
            return None
        client = connect(uri)
        found = client.get_experiment_by_name(name)
        if found is None:
            return None
        require_name(found.name, name)
        entries: dict[Identity, LoggedRun] = {}
        stray = []
        runs = list(logged_runs(client, found.experiment_id))
        for entry in runs:
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
            is_foreign=is_foreign(client, found, runs),
            owner=owner or HOME,
            stray=stray,
        )

    @classmethod
    def open(
        cls, uri: str, name: str, *, artifact_location: str | None, owner: str = HOME
    ) -> "Experiment":
        """Return an MLflow experiment for writing; create it and its database if they are missing.

        Args:
            uri: The tracking address.
            name: Name of the experiment.
            artifact_location: URL for artifacts if the address is a database, because MLflow's
                default depends on the working directory; None if a server chooses it.
            owner: Store whose runs are written: its id, or `HOME` if MLflow's database belongs to a
                single home.

        Raises:
            ForeignExperimentError: If the experiment has only runs of another program.
        """
        database = database_file(uri)
        if database is not None and artifact_location == artifacts_beside(database):
            relocate(database)
        opened = cls.find(uri, name, owner)
        if opened is None:
            client = connect(uri)
            created = client.create_experiment(name, artifact_location=artifact_location)
            require_name(client.get_experiment(created).name, name)
            return cls(client=client, experiment_id=created, tags={}, entries={}, owner=owner)
        if opened.is_foreign:
            raise ForeignExperimentError(
                f"MLflow's experiment {name!r} is of another program; rename it or the study, or "
                "choose another --tracking-uri"
            )
        if opened.is_deleted:
            opened.client.restore_experiment(opened.experiment_id)
        for entry in opened.stray:
            opened.client.delete_run(entry.run_id)
        return opened

    def tag(self, tags: Mapping[str, str]) -> None:
        """Set tags of the study's experiment in MLflow; tags with unchanged values are not sent."""
        for name, value in tags.items():
            if self.tags.get(name) != value:
                self.client.set_experiment_tag(self.experiment_id, name, value)
                self.tags[name] = value

    def bring(self, wanted: Wanted, missing: Missing | None = None) -> LoggedRun:
        """Find or create a run in MLflow, give it the wanted tags, params and rows; return it.

        MLflow's rows (metric values) cannot be changed, so a run with wrong rows is created again.
        The old one is moved to MLflow's trash, unless it may belong to another store.

        Args:
            wanted: Name, tags, params and start time that the run should have.
            missing: Function that takes the run's rows in MLflow and returns the rows to add, or
                None if some are wrong. Without this function no rows are added.
        """
        entry = self.entries.get(wanted.identity)
        rows: Sequence[Row] | None = ()
        if entry is not None and missing is not None:
            rows = missing(self.rows(entry))
            if rows is None:
                if self.owner == HOME or OWNER_TAG in entry.tags:
                    self.drop(entry)
                else:  # it may belong to another store
                    del self.entries[entry.identity]
                entry = None
        if entry is None:
            created = self.client.create_run(
                self.experiment_id,
                start_time=wanted.started_at_ms,
                tags={**wanted.created_tags, OWNER_TAG: self.owner},
            )
            require_name(created.info.experiment_id, self.experiment_id)
            entry = self.entries[wanted.identity] = logged_run(created)
            rows = missing(()) if missing is not None else ()
        tags = {**wanted.all_tags, OWNER_TAG: self.owner}
        self.write(entry, rows=rows or (), tags=tags, params=wanted.params)
        return entry

    def rename(self, entry: LoggedRun, name: tuple[str, ...]) -> None:
        """Give a run in MLflow another name: change the tags that name it, such as its arm.

        The level of the run (study, arm or seed) stays.
        """
        del self.entries[entry.identity]
        self.write(entry, tags=dict(zip(NAMED_BY[entry.level], name, strict=True)))
        self.entries[entry.identity] = entry

    def clear(self, entry: LoggedRun) -> None:
        """Delete all metrics of a run, if MLflow's database is a file; on a server they stay."""
        database = database_file(self.client.tracking_uri)
        if database is not None:
            clear_metrics(database, entry.run_id)
            entry.metric_names, entry.rows = (), []

    def children(self, parent: LoggedRun) -> list[LoggedRun]:
        """Return the child runs of an arm's run in MLflow, one per seed."""
        runs = (entry for entry in self.entries.values() if entry.level == "seed")
        return [entry for entry in runs if entry.tags.get(PARENT_TAG) == parent.run_id]

    def drop(self, entry: LoggedRun) -> None:
        """Move a run to MLflow's trash."""
        self.client.delete_run(entry.run_id)
        del self.entries[entry.identity]

    def rows(self, entry: LoggedRun) -> list[Row]:
        """Return all metric values of a run in MLflow; they are read once and then cached."""
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
        """Send metric values, changed tags and missing params of a run to MLflow, in one call.

        If MLflow has all of them already, no call is made.

        Args:
            entry: The run.
            rows: Metric values to add.
            tags: Tags that the run should have.
            params: Params that the run should have.
        """
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
        """Set the status of a run in MLflow.

        Args:
            entry: The run.
            status: The new status; nothing is sent if the run has it already.
            ended_at_ms: End of the run, Unix time in ms; None means now. Not used for `RUNNING`.
        """
        if entry.status == status:
            return
        if status == "RUNNING":
            self.client.update_run(entry.run_id, status=status)
        else:
            self.client.set_terminated(entry.run_id, status=status, end_time=ended_at_ms)
        entry.status = status

    def tell_data(self, entry: LoggedRun, name: str, checksums: Mapping[str, str]) -> None:
        """Log the dataset of a run as an input of the run in MLflow, with checksums of its files.

        Args:
            entry: The run.
            name: Name of the dataset.
            checksums: Checksum of each data file, by its name.
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
        """Upload the model of a run to MLflow, and write its address to the run's tag `model`.

        The model is complete before the run refers to it. A model from an interrupted attempt is
        used if it is complete, and deleted otherwise.

        Args:
            entry: The run.
            described: MLflow's description of the model (`sweeps.tracking.networks`).
            folder: Folder with the files of the model.
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
        """Upload a model and return its id once it is complete."""
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
        """Upload every file of a folder to MLflow, as an artifact of a run."""
        self.client.log_artifacts(entry.run_id, str(folder))
