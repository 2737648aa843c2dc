"""SQLite files: private to their owner, and reported if they are no databases."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import optuna
import pytest

from sweeps.machine.home import Home
from sweeps.machine.sqlite_files import DatabaseError, alone, require_search, require_tracking
from sweeps.tracking.experiment import Experiment
from tests.damages import DAMAGES, bound_by_modes

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
def test_a_database_with_triggers_or_views_is_refused(home: Home, name: str, sql: str) -> None:
    table, require = REQUIRES[name]
    fill(home.folder / name, table)
    with closing(sqlite3.connect(home.folder / name)) as connection, connection:
        connection.execute(sql.replace("{}", table))
    with pytest.raises(DatabaseError, match=r"has the (trigger|view) evil, "):
        require(home)


def test_a_database_of_mlflow_is_accepted(tmp_path: Path) -> None:
    home = Home(folder=tmp_path)
    Experiment.open(home.tracking_uri, "table1", artifact_location=None)
    require_tracking(home.tracking_uri, SYNC)


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


@pytest.mark.parametrize("name", REQUIRES)
def test_the_database_of_another_program_is_refused(home: Home, name: str) -> None:
    fill(home.folder / name, "bookmarks")
    with pytest.raises(DatabaseError, match="another program"):
        REQUIRES[name][1](home)


def test_a_database_locked_by_a_writer_is_accepted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeps.machine.sqlite_files._PATIENCE", 0.1)
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
