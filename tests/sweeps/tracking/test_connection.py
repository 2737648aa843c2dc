import pytest

from sweeps.tracking.connection import has_settings, refused_setting


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
    assert (has_settings(), refused_setting()) == (False, None)
    monkeypatch.setenv(name, value)
    assert has_settings()
    assert name in (refused_setting() or "")
