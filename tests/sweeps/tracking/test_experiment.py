import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.models import Model

from sweeps.machine.home import Home
from sweeps.study.study import Study
from sweeps.tracking.connection import ForeignExperimentError, is_refusal
from sweeps.tracking.experiment import Experiment
from sweeps.tracking.links import VIEW_TAG
from tests.sweeps.tracked import projection_of, reconcile, results_of, runs_of


def test_database_and_artifact_addresses_of_a_home_are_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Home(folder=Path("runs")).tracking_uri == f"sqlite:///{tmp_path}/runs/mlflow.db"
    assert Home(folder=Path("runs")).artifact_location == f"file://{tmp_path}/runs/artifacts"


def test_a_connection_error_does_not_count_as_a_refusal() -> None:
    assert not is_refusal(MlflowException("API request failed"))
    assert not is_refusal(ConnectionError("refused"))
    assert is_refusal(MlflowException.invalid_parameter_value("a param cannot change"))


@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_experiment_of_another_program_is_refused_and_not_changed(
    study: Study, home: Path, client: MlflowClient, is_deleted: bool
) -> None:
    found = client.create_experiment(study.name, tags={"mlflow.note.content": "mine"})
    client.create_run(found, tags={"level": "seed"})
    if is_deleted:
        client.delete_experiment(found)
    before = client.get_experiment(found)
    said = re.escape(f"MLflow's experiment '{study.name}' is of another program; rename it")
    with pytest.raises(ForeignExperimentError, match=f"^{said}") as told:
        reconcile(projection_of(study, home), results_of(study, 1, 0, 0, 0))
    assert is_refusal(told.value)
    assert dict(client.get_experiment(found)) == dict(before)


@pytest.mark.parametrize("lost", ["the tags", "the runs"])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_experiment_of_mixsweep_is_recognised_by_its_tags_or_its_runs(
    study: Study, home: Path, client: MlflowClient, lost: str, is_deleted: bool
) -> None:
    reconcile(projection_of(study, home), results_of(study, 1, 0, 0, 0))
    found = client.get_experiment_by_name(study.name)
    client.create_run(found.experiment_id)
    if lost == "the runs":
        for level in ("seed", "config"):
            for run in runs_of(study, client, level).values():
                client.delete_run(run.info.run_id)
    else:  # early versions did not write this tag
        with closing(sqlite3.connect(home / "mlflow.db")) as database, database:
            database.execute("DELETE FROM experiment_tags WHERE key = ?", (VIEW_TAG,))
    if is_deleted:
        client.delete_experiment(found.experiment_id)
    reconcile(projection_of(study, home), results_of(study, 1, 0, 0, 0))
    assert client.get_experiment(found.experiment_id).lifecycle_stage == "active"
    assert runs_of(study, client, "seed")


def test_an_empty_experiment_is_used(study: Study, home: Path, client: MlflowClient) -> None:
    found = client.create_experiment(study.name)
    reconcile(projection_of(study, home), results_of(study, 1, 0, 0, 0))
    assert client.get_experiment(found).tags["mlflow.note.content"] == study.description


@pytest.mark.parametrize(
    "call", ["log_model_artifacts", "finalize_logged_model", "log_outputs", "log_batch"]
)
def test_a_model_with_interrupted_logging_is_logged_once_and_ready(
    study: Study, home: Path, client: MlflowClient, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, call: str,
) -> None:  # fmt: skip
    reconcile(projection_of(study, home), results_of(study, 1, 0, 0, 0))
    (tmp_path / "weights").write_bytes(b"weights")

    def log() -> None:
        experiment = Experiment.find(Home(folder=home).tracking_uri, study.name)
        assert experiment is not None
        entry = experiment.entries["seed", (study.runs()[0].key,)]
        experiment.log_model(entry, Model(), tmp_path)

    def cut(*arguments: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(MlflowClient, call, cut)
        with pytest.raises(KeyboardInterrupt):
            log()
    for _ in range(2):
        log()
    (run,) = runs_of(study, client, "seed").values()
    (model,) = client.search_logged_models([run.info.experiment_id])
    assert (model.source_run_id, str(model.status)) == (run.info.run_id, "READY")
    assert run.data.tags["model"] == f"models:/{model.model_id}"
    assert [output.model_id for output in run.outputs.model_outputs] == [model.model_id]
    (stored,) = (home / "artifacts" / "models" / model.model_id / "artifacts").glob("weights")
    assert stored.read_bytes() == b"weights"
