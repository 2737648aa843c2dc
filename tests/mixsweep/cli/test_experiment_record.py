from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from mlflow import MlflowClient

from mixsweep.cli.experiment_record import record_experiment, stored_experiment_id
from mixsweep.cli.request import Request
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study
from sweeps.tracking import connection
from sweeps.tracking.experiment import Experiment

RECORD = "reports/.digits.experiment.json"


@pytest.fixture
def request_of_digits(tmp_path: Path) -> Request:
    """A study whose experiment is in the MLflow database of the home."""
    home = Home(folder=tmp_path)
    Experiment.open(home.tracking_uri, "other", artifact_location=home.artifact_location)
    Experiment.open(home.tracking_uri, "digits", artifact_location=home.artifact_location)
    return Request(reference="digits", overrides=(), study=load_study("digits"), home=home)


def asked_of_mlflow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    ask = connection.experiment_id

    def counted(uri: str, name: str) -> str | None:
        asked.append(name)
        return ask(uri, name)

    monkeypatch.setattr(connection, "experiment_id", counted)
    return asked


def test_mlflow_is_asked_once_for_the_id_of_an_experiment(
    request_of_digits: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asked_of_mlflow(monkeypatch)
    client = MlflowClient(request_of_digits.home.tracking_uri)
    number = client.get_experiment_by_name("digits").experiment_id
    assert [stored_experiment_id(request_of_digits) for _ in range(3)] == 3 * [number]
    assert asked == ["digits"]
    assert (tmp_path / RECORD).is_file()


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"\xff", b'{"experiment_id": 3}'])
def test_a_damaged_record_is_replaced(
    request_of_digits: Request, tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = stored_experiment_id(request_of_digits)
    record = tmp_path / RECORD
    whole = record.read_bytes()
    record.write_bytes(content)
    asked = asked_of_mlflow(monkeypatch)
    assert stored_experiment_id(request_of_digits) == number
    assert asked == ["digits"]
    assert record.read_bytes() == whole


def test_a_folder_with_the_name_of_the_record_stops_no_launch(
    request_of_digits: Request, tmp_path: Path
) -> None:
    (tmp_path / RECORD).mkdir(parents=True)
    record_experiment(request_of_digits, "1")
    assert stored_experiment_id(request_of_digits) is not None


def test_a_record_without_its_database_is_not_used(
    request_of_digits: Request, tmp_path: Path
) -> None:
    assert stored_experiment_id(request_of_digits) is not None
    (tmp_path / "mlflow.db").unlink()
    assert stored_experiment_id(request_of_digits) is None
    assert not (tmp_path / "mlflow.db").exists()


def test_nothing_is_recorded_for_an_mlflow_outside_the_home(tmp_path: Path) -> None:
    home = Home(folder=tmp_path, tracking="http://127.0.0.1:9")
    request = Request(reference="digits", overrides=(), study=load_study("digits"), home=home)
    record_experiment(request, "1")
    assert stored_experiment_id(request) is None
    assert list(tmp_path.iterdir()) == []


def test_a_launch_records_the_id_so_that_a_report_does_not_ask_mlflow(
    tmp_path: Path, type_in: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(
        "study: tiny\ndescription: One law.\nproblem: entropy-floor\n"
        "base: {classes: 3}\narms: {erm: {law: erm}}\nseeds: 2\n"
    )
    trained = type_in("run", str(file), "--engine", "inline")
    assert trained.return_value == 0
    assert (tmp_path / "runs/reports/.tiny.experiment.json").is_file(), trained.stderr
    asked = asked_of_mlflow(monkeypatch)
    assert type_in("report", str(file)).return_value == 0
    assert asked == []
    page = tmp_path / "runs" / "reports" / "tiny" / "report.html"
    assert "viewStateShareKey=arms" in page.read_text()
