from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.models import Model

from sweeps.machine.home import Home
from sweeps.study.study import Study
from sweeps.tracking.connection import is_refusal
from sweeps.tracking.experiment import Experiment
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
