import pytest

from sweeps.machine.databases import DatabaseError
from sweeps.tracking.connection import has_settings, load


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("MLFLOW_HTTP_REQUEST_TIMEOUT", "junk"), ("MLFLOW_ENABLE_ASYNC_LOGGING", "2")],
)
def test_a_variable_with_a_value_that_mlflow_refuses_is_reported(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    assert not has_settings()
    load()
    monkeypatch.setenv(name, value)
    assert has_settings()
    with pytest.raises(DatabaseError, match=f"MLflow refuses an environment variable.*{name}"):
        load()
