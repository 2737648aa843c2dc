"""Databases: addresses of databases, and checks of SQLite files before they are opened."""

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from urllib.request import url2pathname

from mixup_core.addresses import HIDDEN, Address, web_address
from mixup_core.rules import printable
from mixup_core.store.errors import UnreadableError, naming
from mixup_core.store.local_files import open_lock, read_regular, share

_SQLITE = "sqlite:///"
_SQLITE_QUOTED = "sqlite+pysqlite:///"
"""URL prefix that SQLAlchemy treats like `sqlite:///`. With the usual prefix, MLflow creates the
database's folder from the URL-quoted path, which is another path."""


def sqlite_url(file: Path) -> str:
    """Return the URL with which SQLAlchemy opens a SQLite file."""
    plain = f"{_SQLITE}{file}"
    try:
        path = quote(str(file), safe=" +/")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{str(file)!r}: this path is not UTF-8, which SQLite needs; rename its folder or file"
        ) from error
    if path == str(file):
        return plain
    for url in (f"{_SQLITE_QUOTED}{path}", plain):  # before 2.1 SQLAlchemy does not unquote
        if _database(url) == str(file):
            return url
    raise ValueError(
        f"{file}: this path cannot be written as a database URL; rename its folder or file"
    )


def database_file(url: str) -> Path | None:
    """Return the path of the SQLite file that a database URL names; None for other databases."""
    scheme, mark, rest = url.partition("://")
    if not mark or scheme.partition("+")[0] != "sqlite":
        return None
    if scheme == "sqlite" and rest.startswith("/") and not {"%", "?"} & set(rest):
        path: str | None = rest[1:]
    else:
        path = _database(url)
    if not path or path == ":memory:":
        return None
    return Path(url2pathname(urlsplit(path).path) if path.startswith("file:") else path)


def database_address(url: str) -> Address:
    """Return the address of a database server or file without secrets, for messages."""
    scheme, mark, _ = url.partition("://")
    if not mark:
        return Address.of_path(url.removeprefix("file:"))
    if scheme in {"http", "https"}:
        return web_address(url)
    if scheme == "file":
        return Address.of_path(urlsplit(url).path, scheme)
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        return Address.hidden(scheme)
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        return Address.hidden(scheme)
    if "?" in url.partition("@")[0] and "@" in url:  # in a password, or before a query
        return Address.hidden(scheme)
    path = "" if parts.database is None else f"/{parts.database}"
    has_login = parts.username is not None or parts.password is not None
    if scheme.partition("+")[0] == "sqlite" and not has_login and not parts.host:
        if not (address := Address.of_path(parts.database or "", scheme)).is_whole:
            return address
        query = f"?{HIDDEN}" if "?" in url else ""
        return Address(f"{scheme}://{path}{query}", is_whole=not query)
    return Address.of_parts(
        scheme=scheme,
        host=parts.host or "",
        port=parts.port,
        path=path,
        login=HIDDEN if has_login else "",
        query="?" if "?" in url else "",
    )


def _database(url: str) -> str | None:
    """Return the database part of a URL as SQLAlchemy parses it; None if there is none."""
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:  # not installed on machines that only train
        return unquote(url.partition("?")[0].partition(":///")[2])
    try:
        return make_url(url).database
    except (ArgumentError, ValueError):
        return None


_COMPANIONS = ("-journal", "-wal", "-shm")
"""Suffixes of the files that SQLite creates beside a database in use."""
_WITH_TRIGGER = "secrets"
"""Table on which MLflow has a trigger, and to which this program never writes."""
_PATIENCE = 5.0
"""Seconds to wait for another process that writes to the database."""


class DatabaseError(Exception):
    """A database cannot be used; the message says what to do."""


def require_tracking(url: str, sync: str) -> None:
    """Check that MLflow can write to its database, if the database is a SQLite file."""
    if url.partition("://")[0] == url or url.startswith("file:"):
        raise DatabaseError(
            f"{database_address(url)}: MLflow no longer stores runs in plain folders; give "
            f"--tracking-uri sqlite:///PATH or a server's address, or unset MLFLOW_TRACKING_URI"
        )
    file = database_file(url)
    require_companions(file)
    if file is None:
        return
    if trouble := _trouble(file, table="experiments", schema=_schema_of_mlflow()):
        raise DatabaseError(
            f"{file} {trouble}; you can remove this file, because all its data is in the store: "
            f"{sync} restores it"
        )
    _require_lock(file)


def require_search(url: str) -> None:
    """Check that Optuna can write to its database, if the database is a SQLite file."""
    file = database_file(url)
    require_companions(file)
    if file is not None and (trouble := _trouble(file, table="trials")):
        raise DatabaseError(
            f"{file} {trouble}; this file records the points that the searches of this home "
            "proposed: restore a copy, or move the file away to start the searches anew (trained "
            "runs are in the store, and points proposed again reuse them)"
        )


def require_companions(database: Path | None) -> None:
    """Check that SQLite's other files of a database are regular; it would wait for a FIFO."""
    if database is None:
        return
    for suffix in _COMPANIONS:
        place = database.with_name(f"{database.name}{suffix}")
        try:
            read_regular(place, 1)
        except FileNotFoundError:
            continue
        except UnreadableError as error:
            raise DatabaseError(
                f"{place} {error}; SQLite needs this path to write to {database.name}: move what "
                "is there to another path"
            ) from error
        except OSError as error:
            raise DatabaseError(f"{place} cannot be read ({error.strerror})") from error


@contextmanager
def alone(database: Path | None) -> Iterator[None]:
    """Lock a database in a `with` block: two processes that create one could destroy it.

    If the database does not exist, an empty file is created. A reader needs no lock.
    """
    if database is None:
        yield
        return
    if database.exists() and not os.access(database, os.W_OK):
        yield
        return
    lock = _opened_lock(_lock_of(database))
    try:
        with naming(_lock_of(database)):
            fcntl.flock(lock, fcntl.LOCK_EX)
        with suppress(FileExistsError):
            os.close(os.open(database, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            share(database)
        yield
    finally:
        os.close(lock)


def _require_lock(database: Path) -> None:
    """Check that the lock file of `alone` is a regular file, if it exists."""
    if os.path.lexists(place := _lock_of(database)):
        os.close(_opened_lock(place))


def _lock_of(database: Path) -> Path:
    # Frozen: name of the lock file. Two versions could create one database at the same time;
    # tests/sweeps/machine/test_databases.py fails.
    return database.with_name(f"{database.name}.lock")


def _opened_lock(place: Path) -> int:
    try:
        return open_lock(place)
    except UnreadableError as error:
        raise DatabaseError(f"{place} {error}; a lock file contains no data: remove it") from error


def _schema_of_mlflow() -> str | None:
    """Return the database revision that the installed MLflow requires; None if unknown."""
    spec = find_spec("mlflow")
    folder = Path((spec and spec.origin) or "").parent / "store" / "db_migrations" / "versions"
    texts = "\n".join(file.read_text() for file in folder.glob("*.py"))
    revisions, followed = (
        set(re.findall(rf"""^{name} = ["'](\w+)["']$""", texts, re.MULTILINE))
        for name in ("revision", "down_revision")
    )
    last = revisions - followed
    return last.pop() if len(last) == 1 else None


def _trouble(file: Path, *, table: str, schema: str | None = None) -> str | None:
    """Return why a database without this table, or of another schema, cannot be used, or None."""
    try:
        content = read_regular(file, 1)
    except FileNotFoundError:
        return None
    except UnreadableError as error:
        return str(error)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if not content:
        return None
    if not os.access(file, os.W_OK):
        return "cannot be written by this user"
    return _trouble_within(file, table, schema)


def _trouble_within(file: Path, table: str, schema: str | None) -> str | None:
    """Open a database, check its integrity and its tables; return the fault, or None if sound."""
    address = f"{file.resolve().as_uri()}?mode=rw"  # rolls back the write of a killed process
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as connection:
            listed = connection.execute("SELECT type, name, tbl_name FROM sqlite_master").fetchall()
            tables = {name for _, name, _ in listed}
            ((first, *_),) = connection.execute("PRAGMA quick_check(1)").fetchall()
            stored_schema = _schema(connection) if "alembic_version" in tables else None
    except sqlite3.OperationalError as error:
        return None if "locked" in str(error) else f"cannot be opened ({error})"
    except sqlite3.DatabaseError as error:
        return f"is damaged, or is not a SQLite database ({error})"
    if first != "ok":
        return f"is damaged ({first.splitlines()[-1]})"
    for kind, name, of_table in listed:
        if kind == "view" or (kind == "trigger" and of_table != _WITH_TRIGGER):
            return f"has the {kind} {printable(name)}, which could redirect what is written"
    if tables and table not in tables:
        return "is a database of another program"
    if None not in (stored_schema, schema) and stored_schema != schema:
        return (
            "was written by another version of MLflow than the installed one (`mlflow db upgrade` "
            "converts a database of an earlier version)"
        )
    return None


def _schema(connection: sqlite3.Connection) -> str | None:
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])
