"""Settings: the environment variables that MLflow reads, and our defaults for some.

MLflow reads the first of these when it is imported, which takes seconds and may happen in the
tracker's thread while Ray starts. MLflow's own seven retries would block one call for minutes, so
they are turned off; the outbox retries instead.
"""

import os

_DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}

for _name, _value in _DEFAULTS.items():
    os.environ.setdefault(_name, _value)


def has_settings() -> bool:
    """Return True if the user has set a variable of MLflow, which MLflow might reject."""
    return any(
        name.startswith("MLFLOW_") and _DEFAULTS.get(name) != value
        for name, value in os.environ.items()
    )


def refused_setting() -> str | None:
    """Return MLflow's reason to reject a variable; None if all are valid.

    MLflow itself may read some variables only after training. Call this in one thread, because
    simultaneous imports of MLflow in two threads can fail.
    """
    try:
        from mlflow import environment_variables

        for name, variable in vars(environment_variables).items():
            if name in os.environ and hasattr(variable, "get"):
                variable.get()
    except ValueError as error:
        return str(error)
    return None
