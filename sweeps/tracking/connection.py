"""Connection: an MLflow client for a tracking address, and the checks of its answers."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sweeps.machine.databases import database_file, sqlite_url
from sweeps.machine.sqlite_files import DatabaseError, alone
from sweeps.tracking.database import begin, blank_of
from sweeps.tracking.settings import refused_setting

if TYPE_CHECKING:
    from mlflow import MlflowClient

PAGE = 1000
"""Number of runs requested per call."""


def load() -> None:
    """Import MLflow in this thread, because simultaneous imports in two threads can fail.

    Raises:
        DatabaseError: If MLflow rejects an environment variable.
    """
    if reason := refused_setting():
        raise DatabaseError(
            f"MLflow refuses an environment variable: {reason}; correct or unset it"
        )


def experiments(uri: str) -> dict[str, tuple[str, Mapping[str, str]]]:
    """Return the id and the tags of each experiment, by name; empty without a database."""
    database = database_file(uri)
    if database is not None and not database.exists():
        return {}
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    token = None
    client = connect(uri)
    while True:
        page = client.search_experiments(max_results=PAGE, page_token=token)
        found |= {one.name: (one.experiment_id, dict(one.tags)) for one in page}
        token = page.token
        if not token:
            return dict(sorted(found.items()))


class NotMlflowError(Exception):
    """The server at a tracking address is not MLflow."""


def is_refusal(error: Exception) -> bool:
    """Return True if MLflow was reached and rejected the data."""
    from mlflow.exceptions import MlflowException

    if isinstance(error, NotMlflowError):
        return True
    refusals = {"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST"}
    is_nonsense = "not in a valid JSON format" in str(error)
    if not isinstance(error, MlflowException):
        return False
    return is_nonsense or error.error_code in refusals


def require_name(found: str, wanted: str) -> None:
    """Check an answer, because other web servers may answer any request with status 200.

    Raises:
        NotMlflowError: If it is not the answer of an MLflow server.
    """
    if found != wanted:
        raise NotMlflowError(
            f"the server at this address is not MLflow: expected {wanted!r}, got {found!r}"
        )


def connect(uri: str) -> "MlflowClient":
    """Return a client of a tracking address; a database is created first if there is none."""
    import mlflow
    from mlflow import MlflowClient

    for name in ("alembic", "mlflow"):  # both print a line for each table of a new database
        logging.getLogger(name).setLevel(logging.WARNING)
    # It warns at every retry; the outbox prints one message for an outage.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    database = database_file(uri)
    with alone(database):
        if database is not None:
            begin(database, blank_of(mlflow.__version__), _create)
        return MlflowClient(tracking_uri=uri)


def _create(database: Path) -> None:
    """Let MLflow create its tables in a database that does not exist."""
    from mlflow import MlflowClient

    MlflowClient(tracking_uri=sqlite_url(database))
