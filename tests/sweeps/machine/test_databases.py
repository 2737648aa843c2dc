"""Databases: a path becomes a URL that SQLAlchemy opens, and secrets of a URL are not shown."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from sweeps.machine.databases import database_address, database_file, sqlite_url

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
        ("postgresql://bob:s3/CRET@host/db", "postgresql://***@host/db", False),
        ("mysql://u:a@b@h/d", "mysql://***", False),
        ("postgresql://h/d?passwd=x", "postgresql://h/d?***", False),
        ("mssql+pyodbc:///?odbc_connect=PWD%3Dx", "mssql+pyodbc:///?***", False),
        ("postgresql://h:port/d", "postgresql://***", False),
        ("sqlite:////a/b?d.db", "sqlite:////a/b?***", False),
        ("sqlite:////a/b@c.db", "sqlite:////a/b@c.db", True),
        ("http://me:secret@server:5000", "http://***@server:5000", False),
        ("file:///a/mlruns", "file:///a/mlruns", True),
        ("postgresql//me:secret@host/db", "***", False),
        ("sqlite:///x.db,https://me:secret@host/y", "sqlite://***", False),
        ("mlruns", "mlruns", True),
        ("databricks", "databricks", True),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str, is_whole: bool) -> None:
    address = database_address(url)
    assert (str(address), address.is_whole) == (shown, is_whole)
