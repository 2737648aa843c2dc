"""Connection: an MLflow client for a tracking address, its settings, and what its errors mean.

MLflow reads some environment variables when it is imported. It would repeat a failed call seven
times, which can block for minutes; here it repeats a call only once, and the tracker repeats the
write.
"""

import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sweeps.machine.databases import DatabaseError, alone, database_file, sqlite_url

if TYPE_CHECKING:
    from mlflow import MlflowClient


PAGE = 1000
"""Largest number of runs or experiments that one call to MLflow returns."""

_DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}

for _name, _value in _DEFAULTS.items():
    os.environ.setdefault(_name, _value)


class FinalRefusalError(Exception):
    """MLflow would reject all later writes of a launch, too.

    The server is not MLflow, or the experiment with the name of the study is of another program.
    """


def load() -> None:
    """Import MLflow and check its environment variables, while no other thread imports it.

    MLflow may reject the value of a variable only after training.
    """
    try:
        from mlflow import environment_variables

        for name, variable in vars(environment_variables).items():
            if name in os.environ and hasattr(variable, "get"):
                variable.get()
    except ValueError as error:
        raise DatabaseError(
            f"MLflow refuses an environment variable: {error}; correct or unset this variable"
        ) from error


def connect(uri: str) -> "MlflowClient":
    """Return an MLflow client for a tracking address; a missing database file is created first."""
    from mlflow import MlflowClient

    # Alembic prints a line for each table of a new database, urllib3 warns at every retry, MLflow
    # prints the traceback of every failed call, and torch messages at every export of a network.
    # The tracker prints one message itself.
    levels = {"alembic": logging.WARNING, "urllib3": logging.ERROR, "mlflow": logging.CRITICAL}
    levels |= dict.fromkeys(("torch.export", "torch.fx"), logging.ERROR)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    database = database_file(uri)
    with alone(database):
        if database is not None and not database.stat().st_size:
            _create(database)
        return MlflowClient(tracking_uri=uri)


def _create(database: Path) -> None:
    """Create MLflow's tables in another file first: a kill then leaves no half of them."""
    from mlflow import MlflowClient

    with TemporaryDirectory(prefix=".mlflow-", dir=database.parent) as folder:
        scratch = Path(folder) / database.name
        MlflowClient(tracking_uri=sqlite_url(scratch)).delete_experiment("0")  # an empty one
        scratch.chmod(stat.S_IMODE(database.stat().st_mode))
        scratch.replace(database)


def experiments(uri: str) -> dict[str, tuple[str, Mapping[str, str]]]:
    database = database_file(uri)
    if database is not None and not database.exists():
        return {}
    by_name = {one.name: one for one in paged(connect(uri).search_experiments)}
    return {name: (one.experiment_id, dict(one.tags)) for name, one in sorted(by_name.items())}


def paged(search: Callable[..., Any]) -> Iterator[Any]:
    """Yield everything that a search of MLflow finds, page by page."""
    token = None
    while True:
        page = search(max_results=PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def is_refusal(error: Exception) -> bool:
    """Return True if a retry would fail; an answer that is not JSON may be of a proxy."""
    from mlflow.exceptions import MlflowException

    if not isinstance(error, MlflowException):
        return isinstance(error, FinalRefusalError)
    refusals = {"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST"}
    return "not in a valid JSON format" in str(error) or error.error_code in refusals


def require_name(found: str, wanted: str) -> None:
    """Check that a server is MLflow: others may answer any request with status 200."""
    if found != wanted:
        raise FinalRefusalError(
            "the server at the tracking address is not MLflow: its answer must have the name "
            f"{wanted!r}, got {found!r}; correct the address (--tracking-uri or "
            "MLFLOW_TRACKING_URI)"
        )


def require_artifacts(location: str | None) -> None:
    """Check that MLflow can write to its artifact folder, if that folder is on this machine."""
    if location is None or not location.startswith("file:"):
        return
    place = Path(url2pathname(urlsplit(location).path))
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        trouble = "is not a folder"
    elif not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        trouble = "cannot be written by this user"
    else:
        return
    raise DatabaseError(
        f"MLflow's artifact folder {place} {trouble}; MLflow must write reports and networks to "
        "this path: move it away"
    )


def has_settings() -> bool:
    """Return True if the user has set a variable `MLFLOW_...`, so that a check is worth it."""
    return any(
        name.startswith("MLFLOW_") and _DEFAULTS.get(name) != value
        for name, value in os.environ.items()
    )
