"""Connection: create an MLflow client for a tracking address; check that the server is MLflow."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sweeps.machine.databases import database_file, sqlite_url
from sweeps.machine.sqlite_files import DatabaseError, alone, require_tracking
from sweeps.tracking.database import begin, blank_of
from sweeps.tracking.ownership import PAGE, is_foreign, logged_runs
from sweeps.tracking.settings import refused_setting

if TYPE_CHECKING:
    from mlflow import MlflowClient


def load() -> None:
    """Import MLflow, and check the environment variables that it reads.

    Call this while no other thread imports MLflow, because simultaneous imports can fail.

    Raises:
        DatabaseError: If MLflow rejects an environment variable.
    """
    if reason := refused_setting():
        raise DatabaseError(
            f"MLflow refuses an environment variable: {reason}; correct or unset this variable"
        )


def experiments(uri: str) -> dict[str, tuple[str, Mapping[str, str]]]:
    """Return id and tags of each MLflow experiment, by name; empty if no database file exists."""
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


def is_usable(uri: str) -> bool:
    """Return True if an address is that of a database file with MLflow's tables.

    MLflow is not loaded. The result is also False if the installed version cannot use the file.

    Args:
        uri: The tracking address.
    """
    database = database_file(uri)
    if database is None or not database.exists():
        return False
    try:
        require_tracking(uri, "")
        return database.stat().st_size > 0
    except DatabaseError:
        return False


def experiment_id(uri: str, name: str) -> str | None:
    """Return the id of the experiment with a given name in MLflow's database file.

    The result is None if the file cannot be used (`is_usable`), if MLflow is missing or raises an
    error, or if the experiment does not exist, is in MLflow's trash, or is of another program.

    Args:
        uri: The tracking address.
        name: Name of the experiment.
    """
    if not is_usable(uri):  # MLflow repeats for minutes the opening of a damaged database
        return None
    try:
        load()
        client = connect(uri)
        found = client.get_experiment_by_name(name)
        if found is None or found.lifecycle_stage != "active":
            return None
        runs = logged_runs(client, found.experiment_id)
        return None if is_foreign(client, found, runs) else found.experiment_id
    except Exception:  # MLflow raises many kinds of errors, and a report can do without links
        return None


class NotMlflowError(Exception):
    """The server at the tracking address answers, but is not an MLflow server.

    The address is that of `--tracking-uri` or MLFLOW_TRACKING_URI.
    """


class ForeignExperimentError(Exception):
    """An experiment in MLflow has the name of a study, and only runs of another program."""


def is_final_refusal(error: Exception) -> bool:
    """Return True if all later writes of a launch would be rejected, too.

    An answer that is not JSON is not final, because a proxy may have sent it.
    """
    return isinstance(error, (NotMlflowError, ForeignExperimentError))


def is_refusal(error: Exception) -> bool:
    """Return True if a retry would fail: MLflow or this program rejects the call.

    After any other error, for example a lost connection, the call may succeed later.
    """
    from mlflow.exceptions import MlflowException

    if is_final_refusal(error):
        return True
    refusals = {"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST"}
    if not isinstance(error, MlflowException):
        return False
    is_nonsense = "not in a valid JSON format" in str(error)
    return is_nonsense or error.error_code in refusals


def require_name(found: str, wanted: str) -> None:
    """Check that a server is MLflow: its answer must contain the expected name or id.

    Other web servers may answer any request with status 200.

    Args:
        found: Name or id in the server's answer.
        wanted: Name or id that MLflow would return.

    Raises:
        NotMlflowError: If the two differ.
    """
    if found != wanted:
        raise NotMlflowError(
            "the server at the tracking address is not MLflow: its answer must have the name "
            f"{wanted!r}, got {found!r}; correct the address (--tracking-uri or "
            "MLFLOW_TRACKING_URI)"
        )


def connect(uri: str) -> "MlflowClient":
    """Return an MLflow client for a tracking address; a missing database file is created first."""
    import mlflow
    from mlflow import MlflowClient

    for name in ("alembic", "mlflow"):  # both print a line for each table of a new database
        logging.getLogger(name).setLevel(logging.WARNING)
    # urllib3 warns at every retry; the outbox prints one message for an outage.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    database = database_file(uri)
    with alone(database):
        if database is not None:
            begin(database, blank_of(mlflow.__version__), _create)
        return MlflowClient(tracking_uri=uri)


def _create(database: Path) -> None:
    """Create a database file with MLflow's tables."""
    from mlflow import MlflowClient

    MlflowClient(tracking_uri=sqlite_url(database))
