from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException

from sweeps.home import Home, masked
from sweeps.tracking.experiment import is_refusal


def test_a_home_holds_its_database_and_its_artifacts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Home(folder=Path("runs")).tracking_uri == f"sqlite:///{tmp_path}/runs/mlflow.db"
    assert Home(folder=Path("runs")).artifact_location == f"file://{tmp_path}/runs/artifacts"


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("http://ann:secret@host:5000/x", "http://ann:***@host:5000/x"),
        ("postgresql://ann:s@cret@host/db", "postgresql://ann:***@host/db"),
        ("http://host:5000", "http://host:5000"),
        ("postgresql://host/db?user=a&password=s", "postgresql://host/db?user=a&password=***"),
        ("run --store=s3://k:s@b --set a=1", "run --store=s3://k:***@b --set a=1"),
        ("sqlite:////home/ann/mlflow.db", "sqlite:////home/ann/mlflow.db"),
    ],
)
def test_a_password_is_not_shown(uri: str, shown: str) -> None:
    assert masked(uri) == shown


def test_an_outage_is_not_a_refusal() -> None:
    assert not is_refusal(MlflowException("API request failed"))
    assert not is_refusal(ConnectionError("refused"))
    assert is_refusal(MlflowException.invalid_parameter_value("a param cannot change"))
