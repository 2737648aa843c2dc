"""Database: what of an SQLite file of MLflow's must change and its interface cannot change."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sweeps.sqlite_files import alone

_PATIENCE = 20.0
"""Seconds to wait for another process that writes."""
_FOLDER = "artifacts"


def artifacts_beside(database: Path) -> str:
    """Return where artifacts lie in the home of a database, as a URL."""
    return (database.parent.resolve() / _FOLDER).as_uri()


def relocate(database: Path) -> None:
    """Let runs log into the home that a database lies in, not where the home was made.

    MLflow keeps absolute addresses of artifacts, so a home that was moved or copied would go on
    writing into the old one. Experiments whose artifacts are not in a home are left alone.
    """
    if not database.is_file():
        return
    here = artifacts_beside(database)
    with alone(database), closing(sqlite3.connect(database, timeout=_PATIENCE)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'experiments'")
        if tables.fetchone() is None:
            return
        moved = connection.execute(
            "SELECT experiment_id, artifact_location FROM experiments "
            "WHERE artifact_location LIKE 'file:%/' || ? AND artifact_location != ?",
            (_FOLDER, here),
        ).fetchall()
        with connection:
            for experiment_id, before in moved:
                connection.execute(
                    "UPDATE runs SET artifact_uri = ? || substr(artifact_uri, ?) "
                    "WHERE experiment_id = ? AND substr(artifact_uri, 1, ?) = ?",
                    (here, len(before) + 1, experiment_id, len(before) + 1, f"{before}/"),
                )
                connection.execute(
                    "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?",
                    (here, experiment_id),
                )


def clear_metrics(database: Path, run_id: str) -> None:
    """Take all metrics from a run, which keeps its name and its address."""
    with closing(sqlite3.connect(database, timeout=_PATIENCE)) as connection, connection:
        for table in ("metrics", "latest_metrics"):
            connection.execute(f"DELETE FROM {table} WHERE run_uuid = ?", (run_id,))  # noqa: S608
