"""Databases: a path becomes a URL that SQLAlchemy opens, and secrets of a URL are not shown."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from sweeps.machine.databases import (
    DatabaseError,
    alone,
    database_address,
    database_file,
    require_search,
    require_tracking,
    sqlite_url,
)
from sweeps.machine.home import Home
from sweeps.tracking.experiment import Experiment
from tests.damages import DAMAGES, bound_by_modes

ODD = ["a::b", "h?1", "what?mode=ro", "w%201", "a#b", "results[2026]", "a\\b", "a b", "é", "a+b",
       "me@site", "'x'", "%41"]  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_sqlite_creates_its_file_at_the_path_in_the_url(tmp_path: Path, name: str) -> None:
    file = tmp_path / name / "x.db"
    file.parent.mkdir()
    engine = create_engine(sqlite_url(file))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE t (i INTEGER)"))
    engine.dispose()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("t",)]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_a_file_survives_the_round_trip_through_its_sqlite_url(name: str) -> None:
    file = Path("/", name)
    assert database_file(sqlite_url(file)) == file


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:///runs/x.db", "runs/x.db"),
        ("sqlite:////runs/x.db?timeout=3", "/runs/x.db"),
        ("sqlite+pysqlite:////runs/x.db", "/runs/x.db"),
        ("sqlite:///file:/a/b%253Fc?uri=true", "/a/b?c"),
        ("sqlite://", None),
        ("sqlite:///:memory:", None),
        ("postgresql://host/x.db", None),
        ("runs/x.db", None),
    ],
)
def test_only_sqlite_urls_with_a_path_give_a_database_file(url: str, file: str | None) -> None:
    assert database_file(url) == (file and Path(file))


@pytest.mark.parametrize(
    ("url", "shown", "is_whole"),
    [
        ("postgresql+psycopg://host:5432/db", "postgresql+psycopg://host:5432/db", True),
        ("sqlite:////a/b?d.db", "sqlite:////a/b?***", False),
        ("sqlite:////a/b@c.db", "sqlite:////a/b@c.db", True),
        ("file:///a/mlruns", "file:///a/mlruns", True),
        ("mlruns", "mlruns", True),
        ("databricks", "databricks", True),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str, is_whole: bool) -> None:
    address = database_address(url)
    assert (str(address), address.is_whole) == (shown, is_whole)


SYNC = "mixsweep sync table1"


@pytest.fixture
def home() -> Iterator[Home]:
    with bound_by_modes() as folder:
        yield Home(folder=folder)


def fill(file: Path, table: str) -> None:
    """Write a database of several pages with one table."""
    with alone(file), closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"CREATE TABLE {table} (name TEXT)")
        rows = [("x" * 1000,)] * 100
        connection.executemany(f"INSERT INTO {table} VALUES (?)", rows)


REQUIRES: dict[str, tuple[str, Callable[[Home], None]]] = {
    "mlflow.db": ("experiments", lambda home: require_tracking(home.tracking_uri, SYNC)),
    "optuna.db": ("trials", lambda home: require_search(home.optuna_url)),
}


@pytest.mark.parametrize("name", REQUIRES)
@pytest.mark.parametrize("damage", sorted(DAMAGES.keys() - {"missing", "empty", "bit flipped"}))
def test_an_invalid_database_file_is_reported_in_one_line_with_a_remedy(
    home: Home, name: str, damage: str
) -> None:
    table, require = REQUIRES[name]
    fill(home.folder / name, table)
    require(home)
    DAMAGES[damage](home.folder / name)
    with pytest.raises(DatabaseError) as caught:
        require(home)
    said = str(caught.value)
    assert said.startswith(f"{home.folder / name} ")
    assert "\n" not in said
    restored = f"all its data is in the store: {SYNC} restores it"
    assert (restored in said) == (name == "mlflow.db")
    assert ("restore a copy" in said) == (name == "optuna.db")


def test_a_damaged_page_in_the_middle_of_a_database_is_detected(home: Home) -> None:
    file = home.folder / "mlflow.db"
    fill(file, "experiments")
    with file.open("r+b") as database:
        database.seek(5 * 4096)
        database.write(b"\xff" * 4096)
    with pytest.raises(DatabaseError, match="is damaged"):
        require_tracking(home.tracking_uri, SYNC)


@pytest.mark.parametrize("name", REQUIRES)
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER evil AFTER INSERT ON {} BEGIN UPDATE {} SET name = 'x'; END",
        "CREATE VIEW evil AS SELECT random() FROM {}",
    ],
)
def test_a_database_with_triggers_or_views_or_of_another_program_is_refused(
    home: Home, name: str, sql: str
) -> None:
    table, require = REQUIRES[name]
    fill(home.folder / name, table)
    with closing(sqlite3.connect(home.folder / name)) as connection, connection:
        connection.execute(sql.replace("{}", table))
    with pytest.raises(DatabaseError, match=r"has the (trigger|view) evil, "):
        require(home)
    (home.folder / name).unlink()
    fill(home.folder / name, "bookmarks")
    with pytest.raises(DatabaseError, match="another program"):
        require(home)


def test_the_journal_of_a_killed_writer_is_rolled_back(home: Home) -> None:
    """The journal undoes uncommitted changes; without it the database would be damaged."""
    file, journal = home.folder / "mlflow.db", home.folder / "mlflow.db-journal"
    fill(file, "experiments")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA cache_size = 2")
        connection.execute("UPDATE experiments SET name = 'y' || substr(name, 2)")
        written, undone = file.read_bytes(), journal.read_bytes()
        connection.rollback()
    file.write_bytes(written)
    journal.write_bytes(undone)
    require_tracking(home.tracking_uri, SYNC)
    with closing(sqlite3.connect(file)) as connection:
        ((first,),) = connection.execute("SELECT DISTINCT substr(name, 1, 1) FROM experiments")
    assert first == "x"


def test_a_database_locked_by_a_writer_is_accepted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeps.machine.databases._PATIENCE", 0.1)
    file = home.folder / "mlflow.db"
    fill(file, "experiments")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        require_tracking(home.tracking_uri, SYNC)


def test_databases_are_created_private_to_their_owner_under_any_umask(tmp_path: Path) -> None:
    home = Home(folder=tmp_path / "home")
    before = os.umask(0)
    try:
        Experiment.open(home.tracking_uri, "a", artifact_location=home.artifact_location)
        with alone(home.folder / "optuna.db"):
            optuna.create_study(storage=home.optuna_url)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in home.folder.iterdir()}
    files = ("mlflow.db", "mlflow.db.lock", "optuna.db", "optuna.db.lock")
    assert {name: modes[name] for name in files} == dict.fromkeys(files, 0o600)
    assert home.folder.stat().st_mode & 0o777 == 0o700
