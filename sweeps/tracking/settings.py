"""Settings: the environment variables that MLflow reads, and defaults of mixsweep for some.

MLflow reads some variables when it is imported, which takes seconds and may happen in the tracker's
thread while Ray starts. MLflow would repeat a failed call seven times, which can block for minutes.
Therefore mixsweep lets it repeat a call only once; the tracker repeats the write.
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
    """Return True if the user has set an environment variable of MLflow (`MLFLOW_...`).

    MLflow might reject its value, so it is worth a check before training (`refused_setting`).
    """
    return any(
        name.startswith("MLFLOW_") and _DEFAULTS.get(name) != value
        for name, value in os.environ.items()
    )


def refused_setting() -> str | None:
    """Return the reason why MLflow rejects an environment variable; None if all are valid.

    Without this check, MLflow may reject a variable only after training. Call this while no other
    thread imports MLflow, because simultaneous imports can fail.
    """
    try:
        from mlflow import environment_variables

        for name, variable in vars(environment_variables).items():
            if name in os.environ and hasattr(variable, "get"):
                variable.get()
    except ValueError as error:
        return str(error)
    return None
