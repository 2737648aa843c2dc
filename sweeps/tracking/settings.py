"""Settings: the variables of the environment that MLflow reads, and our defaults of some.

MLflow is imported by whoever calls it first, the tracker's thread while Ray starts: it takes
seconds. It reads the first of these then. With its own seven retries one call would block for
minutes; the outbox repeats instead.
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
    """Return whether the user has set a variable of MLflow, which it may refuse."""
    return any(
        name.startswith("MLFLOW_") and _DEFAULTS.get(name) != value
        for name, value in os.environ.items()
    )


def refused_setting() -> str | None:
    """Return why MLflow refuses a variable, which it may read at the end of a training only.

    Where two threads import MLflow at once, each may meet half of a package.
    """
    try:
        from mlflow import environment_variables

        for name, variable in vars(environment_variables).items():
            if name in os.environ and hasattr(variable, "get"):
                variable.get()
    except ValueError as error:
        return str(error)
    return None
