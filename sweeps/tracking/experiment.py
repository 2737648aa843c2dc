"""Experiment: the runs of one study in MLflow, which are written and never read for results.

Each study is an experiment in MLflow. In this experiment, an arm is a run of level `config`, the
runs of the arm are child runs of level `seed`, and one run of level `sweep` has the report.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sweeps.machine.databases import database_file
from sweeps.tracking.connection import FinalRefusalError, connect, paged, require_name
from sweeps.tracking.links import VIEW_TAG
from sweeps.tracking.rows import Row

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment as MlflowExperiment
    from mlflow.entities import Run as MlflowRun


Level = Literal["sweep", "config", "seed"]
Status = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]
Identity = tuple[str, tuple[str, ...]]
"""Level of a run, and its name within the level: the values of the tags `NAMED_BY`."""

# Frozen: names of tags. MLflow's runs of earlier versions would be deleted and written again;
# tests/sweeps/tracking/test_study_log.py fails.
NAMED_BY: Mapping[str, tuple[str, ...]] = {
    "sweep": ("study", "config_id"),
    "config": ("arm", "config_id"),
    "seed": ("run_key",),
}
NAME_TAG = "mlflow.runName"
NOTE_TAG = "mlflow.note.content"
"""Tag with the Markdown text that MLflow shows on the page of a run or an experiment."""
PARENT_TAG = "mlflow.parentRunId"
OWNER_TAG = "mixsweep.store"
"""Tag with the owner of a run, because several stores can write to one MLflow server: the random id
of the store, or `HOME` if the database belongs to a single home."""
HOME = "home"
CONTENT_TAG = "content"
"""Tag with a hash of the content of a run, set last; empty while a run is in training."""
_LONGEST = {"run": 8000, "experiment": 5000, "param": 6000}
"""Largest number of characters that MLflow accepts in a tag or a param."""


@dataclass(kw_only=True, slots=True)
class Entry:
    """One run in MLflow that mixsweep has written, with its known content."""

    run_id: str
    status: str
    tags: dict[str, str]
    params: dict[str, str]
    sent: set[Row] = field(default_factory=set)
    """Rows that this process has sent."""

    @property
    def identity(self) -> Identity:
        """Level and name of the run; names are empty if another program changed its tags."""
        level = self.tags.get("level", "")
        return level, tuple(self.tags.get(tag, "") for tag in NAMED_BY.get(level, ()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """Writes the runs of one study to MLflow; raises `MlflowException` if MLflow fails.

    After such an error it is unknown which data MLflow has stored: open the experiment again.
    """

    client: "MlflowClient"
    experiment_id: str
    tags: dict[str, str]
    entries: dict[Identity, Entry]
    """Runs that this store wrote, by level and name."""
    owners: Sequence[str] = (HOME,)
    """Marks of this store's runs in `OWNER_TAG`; new runs get the first."""

    @classmethod
    def open(
        cls, uri: str, name: str, *, artifact_location: str | None, owners: Sequence[str] = (HOME,)
    ) -> "Experiment":
        """Return an experiment, which is created if missing; end runs that are left RUNNING."""
        client = connect(uri)
        found = client.get_experiment_by_name(name)
        if found is not None:
            require_name(found.name, name)
        if found is not None and found.lifecycle_stage == "deleted":
            if VIEW_TAG not in found.tags:
                raise _foreign(name)
            client.restore_experiment(found.experiment_id)
        if found is not None and (
            _is_misplaced(client, found, uri, artifact_location) or _is_early(client, found)
        ):
            # MLflow has no call that changes where artifacts are: the study is written again.
            client.rename_experiment(found.experiment_id, f"{name} ({found.experiment_id}, old)")
            client.delete_experiment(found.experiment_id)
            found = None
        if found is None:
            created = client.create_experiment(name, artifact_location=artifact_location)
            found = client.get_experiment(created)
            require_name(found.name, name)
        opened = cls(
            client=client, experiment_id=found.experiment_id, tags=dict(found.tags), entries={},
            owners=owners,
        )  # fmt: skip
        opened._read(found)
        return opened

    def _read(self, experiment: "MlflowExperiment") -> None:
        """Read which runs exist; delete duplicates and damaged ones, end those left RUNNING."""
        place, is_foreign = experiment.artifact_location, VIEW_TAG not in experiment.tags
        runs = list(_runs(self.client, self.experiment_id))
        if runs and is_foreign and not any(OWNER_TAG in run.data.tags for run in runs):
            raise _foreign(experiment.name)
        for run in runs:
            if run.data.tags.get(OWNER_TAG) not in self.owners:
                continue
            entry = Entry(
                run_id=run.info.run_id, status=run.info.status, tags=dict(run.data.tags),
                params=dict(run.data.params),
            )  # fmt: skip
            is_named = any(entry.identity[1]) and all(entry.identity[1])
            run_id = entry.run_id
            has_own_folder = run.info.artifact_uri == f"{place.rstrip('/')}/{run_id}/artifacts"
            if (
                not (is_named and has_own_folder and run_id.isalnum())
                or entry.identity in self.entries
            ):
                self.client.delete_run(entry.run_id)
                continue
            self.entries[entry.identity] = entry
            if entry.status == "RUNNING":
                self.end(entry, "KILLED")

    def tag(self, tags: Mapping[str, str]) -> None:
        """Set changed tags of the experiment; cut a long note, and skip other long texts."""
        for name, value in tags.items():
            cut = value[: _LONGEST["experiment"]]
            if self.tags.get(name) != cut and (cut == value or name == NOTE_TAG):
                self.client.set_experiment_tag(self.experiment_id, name, cut)
                self.tags[name] = cut

    def bring(  # noqa: PLR0913  the facts of a run
        self,
        level: Level,
        name: tuple[str, ...],
        tags: Mapping[str, str],
        *,
        first_tags: Mapping[str, str],
        params: Mapping[str, str],
        started_at_ms: int | None = None,
    ) -> Entry:
        """Return a run in MLflow with these tags and params; create it if it is missing."""
        name_tags = dict(zip(NAMED_BY[level], name, strict=True))
        tags = {**tags, **name_tags, "level": level, OWNER_TAG: self.owners[0]}
        entry = self.entries.get((level, name))
        if entry is None:
            tags = _cut({**first_tags, **tags}, "run")
            made = self.client.create_run(self.experiment_id, start_time=started_at_ms, tags=tags)
            require_name(made.info.experiment_id, self.experiment_id)
            entry = Entry(run_id=made.info.run_id, status="RUNNING", tags=tags, params={})
            self.entries[level, name] = entry
        self.write(entry, tags=tags, params=params)
        return entry

    def write(
        self,
        entry: Entry,
        *,
        rows: Iterable[Row] = (),
        tags: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> None:
        """Send rows, changed tags and missing params of a run in one call; none if all are sent."""
        from mlflow.entities import Metric, Param, RunTag

        new = [row for row in rows if row not in entry.sent]
        cut = _cut(tags or {}, "run").items()
        tags = {name: value for name, value in cut if entry.tags.get(name) != value}
        missing = _cut(params or {}, "param").items() if params else ()
        params = {name: value for name, value in missing if name not in entry.params}
        if not (new or tags or params):
            return
        self.client.log_batch(
            entry.run_id,
            metrics=[Metric(row.name, row.value, row.at_ms, row.step) for row in new],
            params=[Param(*param) for param in params.items()],
            tags=[RunTag(*tag) for tag in tags.items()],
        )
        entry.sent.update(new)
        entry.tags |= tags
        entry.params |= params

    def end(self, entry: Entry, status: Status, ended_at_ms: int | None = None) -> None:
        """Set the status of a run; its end is Unix time in ms, None means now."""
        if entry.status == status:
            return
        if status == "RUNNING":
            self.client.update_run(entry.run_id, status=status)
        else:
            self.client.set_terminated(entry.run_id, status=status, end_time=ended_at_ms)
        entry.status = status

    def drop(self, entry: Entry) -> None:
        self.client.delete_run(entry.run_id)
        del self.entries[entry.identity]


def _foreign(name: str) -> FinalRefusalError:
    return FinalRefusalError(
        f"the MLflow experiment {name!r} has only runs of another program; rename it, or the study"
    )


def _cut(texts: Mapping[str, str], kind: str) -> dict[str, str]:
    return {name: text[: _LONGEST[kind]] for name, text in texts.items()}


def _is_misplaced(
    client: "MlflowClient", found: "MlflowExperiment", uri: str, artifact_location: str | None
) -> bool:
    """Return True if a home's database names another artifact folder: it was moved or changed."""
    database = database_file(uri)
    default = database and (Path(database).parent.resolve() / "artifacts").as_uri()
    if default is None or artifact_location != default or found.artifact_location == default:
        return False
    return VIEW_TAG in found.tags or not any(True for _ in _runs(client, found.experiment_id))


def _is_early(client: "MlflowClient", found: "MlflowExperiment") -> bool:
    """Return True if an experiment has only runs that mixsweep wrote before it marked its own."""
    if VIEW_TAG in found.tags:
        return False
    tags = [run.data.tags for run in _runs(client, found.experiment_id)]
    early = ("run_key" in of_run and OWNER_TAG not in of_run for of_run in tags)
    return any(early) and all({"level", OWNER_TAG} & of_run.keys() for of_run in tags)


def _runs(client: "MlflowClient", experiment_id: str) -> Iterator["MlflowRun"]:
    of_one = partial(client.search_runs, [experiment_id], order_by=["attributes.start_time ASC"])
    return paged(of_one)


def upload_network(experiment: Experiment, entry: Entry, network: Any, example: Any) -> str:
    """Upload a network as a graph that loads without code of mixsweep; return its address."""
    from mlflow.entities import LoggedModelOutput

    client = experiment.client
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        described = export_network(network, example, folder)
        logged = client.create_logged_model(
            experiment.experiment_id, name="model", source_run_id=entry.run_id
        )
        described.model_id, described.run_id = logged.model_id, entry.run_id
        described.save(str(folder / "MLmodel"))
        client.log_model_artifacts(logged.model_id, str(folder))
    client.finalize_logged_model(logged.model_id, "READY")
    client.log_outputs(entry.run_id, [LoggedModelOutput(logged.model_id, step=0)])
    return f"models:/{logged.model_id}"


def export_network(network: Any, example: Any, folder: Path) -> Any:
    """Write a network to a new folder as a traced graph; return its description (`Model`)."""
    import mlflow.pytorch
    import torch
    from mlflow.models import Model, infer_signature

    with torch.no_grad():
        signature = infer_signature(example.numpy(), network(example).numpy())
    described = Model()
    mlflow.pytorch.save_model(
        network,
        str(folder),
        mlflow_model=described,
        signature=signature,
        input_example=example.numpy(),
        pip_requirements=[f"torch=={torch.__version__.partition('+')[0]}"],
        serialization_format="pt2",
    )
    return described
