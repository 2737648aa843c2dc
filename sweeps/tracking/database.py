"""Database: direct access to MLflow's SQLite file, where MLflow's own interface is not enough."""

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mixup_core.store.errors import StoreError, UnreadableError
from mixup_core.store.local_files import read_regular, write_durably
from sweeps.machine.sqlite_files import DatabaseError, alone, require_companions
from sweeps.tracking.links import VIEW_TAG
from sweeps.tracking.logged_run import OWN_TAGS

_PATIENCE = 20.0
"""Seconds to wait for another process that writes."""
_FOLDER = "artifacts"
_LARGEST = 2**26
"""Largest size of a blank database that is read, in bytes; a usual one has half a million."""


def artifacts_beside(database: Path) -> str:
    """Return the URL of the artifact folder that is in the same home as a database file."""
    return (database.parent.resolve() / _FOLDER).as_uri()


def require_artifacts(location: str | None) -> None:
    """Check that MLflow can write to its artifact folder, if that folder is on this machine.

    Args:
        location: URL of the folder; None if an MLflow server chooses the folder.

    Raises:
        DatabaseError: If the path is not a folder, or this user cannot write to it.
    """
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


def blank_of(version: str) -> Path:
    """Return the path `mlflow-VERSION.db`, from which `begin` makes the name of a cached database.

    The cached database has MLflow's tables and no experiments; `begin` copies it into new homes.
    Its file name is `mlflow-VERSION-SHA256.db`, with the SHA-256 of its content. A file whose
    content does not fit its name, because it is damaged or of another program, is not used.

    Args:
        version: Version of MLflow.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache).absolute() / "mixsweep" / f"mlflow-{version}.db"


def begin(database: Path, blank: Path, create: Callable[[Path], None]) -> None:
    """Fill an empty database with MLflow's tables, in one transaction.

    If the process is killed, the database is still empty. MLflow itself would run all migrations
    since its first version: 3 s of processor time, and a kill would leave tables of an old version.
    The tables are therefore copied from a blank database, or made in a temporary file first.

    Args:
        database: The existing file; if it is not empty, it is not changed.
        blank: Path of the blank database (`blank_of`). A file that other users can write to is not
            used.
        create: Function that creates a database file with MLflow's tables at a path.
    """
    if database.stat().st_size:
        return
    for file in sorted(blank.parent.glob(f"{blank.stem}-*{blank.suffix}")):
        content = _own_content(file)
        if content is not None and file == _kept_as(blank, content) and _fill(database, content):
            return
    with TemporaryDirectory(prefix="mixsweep-mlflow-") as folder:
        scratch = Path(folder) / database.name
        create(scratch)
        content = _without_experiments(scratch)
    if _fill(database, content):
        _keep(content, blank)


def _fill(database: Path, content: bytes) -> bool:
    """Copy a serialized database into an empty file; return False if SQLite reports an error."""
    try:
        with (
            closing(sqlite3.connect(":memory:")) as source,
            closing(sqlite3.connect(database, timeout=_PATIENCE)) as copy,
        ):
            source.deserialize(content)
            source.backup(copy)
    except sqlite3.Error:
        return False
    return True


def _without_experiments(database: Path) -> bytes:
    """Return a database that MLflow has just created, serialized and without its experiments."""
    with (
        closing(sqlite3.connect(database, timeout=_PATIENCE)) as source,
        closing(sqlite3.connect(":memory:")) as copy,
    ):
        source.backup(copy)
        with copy:
            copy.execute("DELETE FROM experiments")
        return copy.serialize()


def _keep(content: bytes, blank: Path) -> None:
    """Save MLflow's tables for future homes, in place of older copies.

    Failures are ignored: new homes then run the migrations.
    """
    kept = _kept_as(blank, content)
    try:
        write_durably(kept, content)
    except (OSError, StoreError):
        return
    for pattern in (blank.name, f"{blank.name}.*", f"{blank.stem}-*"):
        for former in blank.parent.glob(pattern):
            if former != kept:
                with suppress(OSError):
                    former.unlink()


def _kept_as(blank: Path, content: bytes) -> Path:
    return blank.with_name(f"{blank.stem}-{hashlib.sha256(content).hexdigest()}{blank.suffix}")


def _own_content(file: Path) -> bytes | None:
    """Return the content of a file that only this user can write; None for other files."""
    try:
        found = file.lstat()
        others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or found.st_uid != os.geteuid()
        return None if others or stat.S_ISLNK(found.st_mode) else read_regular(file, _LARGEST)
    except (OSError, UnreadableError):
        return None


def relocate(database: Path) -> None:
    """Update the artifact paths in an MLflow database after its home was moved or copied.

    MLflow stores absolute paths of artifacts, so it would still write to the old folder. An
    experiment is only changed if it has runs or the view of a study, and its artifacts are in a
    local folder named `artifacts`.

    Args:
        database: The database file in the home; nothing is done if it does not exist.
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
            "WHERE artifact_location LIKE 'file:%/' || ? AND artifact_location != ? "
            "AND experiment_id IN (SELECT experiment_id FROM experiment_tags WHERE key = ? "
            "UNION SELECT experiment_id FROM runs JOIN tags USING (run_uuid) "
            "WHERE tags.key IN (SELECT value FROM json_each(?)))",
            (_FOLDER, here, VIEW_TAG, json.dumps([*OWN_TAGS])),
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """One experiment in an MLflow database: a hash of its rows, and its folders of artifacts."""

    sha256: str
    """Hash of every row of the experiment and of its runs."""
    artifacts: tuple[Path, ...]
    """Existing folders with artifacts of the runs."""


def contents_of(database: Path, name: str) -> Contents | None:
    """Return a hash of an experiment's rows and its artifact folders, read without MLflow.

    MLflow's client has no function that reads all rows of an experiment: it reads the history of
    one metric of one run per call. The result is None if the experiment does not exist, its
    artifacts are not on this machine, or the database cannot be read.

    Args:
        database: MLflow's database file; it is not changed.
        name: Name of the experiment.
    """
    if not database.is_file():
        return None
    try:
        require_companions(database)
        address = f"{database.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as connection:
            return _contents_of(connection, name)
    except (DatabaseError, sqlite3.Error):
        return None


def _contents_of(connection: sqlite3.Connection, name: str) -> Contents | None:
    found = connection.execute(
        "SELECT experiment_id, artifact_location FROM experiments WHERE name = ?", (name,)
    ).fetchone()
    if found is None or not str(found[1]).startswith("file:"):
        return None
    runs = "SELECT run_uuid FROM runs WHERE experiment_id = :id"
    owners = {
        "experiment_id": "= :id",
        "run_uuid": f"IN ({runs})",
        "destination_id": f"IN ({runs})",
    }
    digest = hashlib.sha256()
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    for (table,) in tables.fetchall():
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        owner = next((column for column in owners if column in columns), None)
        if owner is None:
            continue
        query = f'SELECT * FROM "{table}" WHERE "{owner}" {owners[owner]}'  # noqa: S608
        digest.update(repr((table, columns)).encode())
        for row in connection.execute(query, {"id": found[0]}):
            digest.update(repr(row).encode())
    places = connection.execute(
        "SELECT artifact_uri FROM runs WHERE experiment_id = ? ORDER BY run_uuid", found[:1]
    )
    folders = [Path(url2pathname(urlsplit(place).path)) for (place,) in places if place]
    return Contents(sha256=digest.hexdigest(), artifacts=tuple(f for f in folders if f.is_dir()))


def clear_metrics(database: Path, run_id: str) -> None:
    """Delete all metrics of a run from MLflow's database; the run itself stays, with its id."""
    with closing(sqlite3.connect(database, timeout=_PATIENCE)) as connection, connection:
        for table in ("metrics", "latest_metrics"):
            connection.execute(f"DELETE FROM {table} WHERE run_uuid = ?", (run_id,))  # noqa: S608
