import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient

from sweeps.machine.home import Home
from sweeps.machine.sqlite_files import DatabaseError, require_tracking
from sweeps.study.study import Study
from sweeps.tracking.connection import experiment_id
from sweeps.tracking.database import (
    begin,
    contents_of,
    relocate,
    require_artifacts,
)
from sweeps.tracking.experiment import Experiment
from tests.damages import DAMAGES, bound_by_modes
from tests.sweeps.tracked import projection_of, reconcile, results_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"
)


def files_of(home: Path) -> list[Path]:
    return sorted(path.relative_to(home) for path in (home / "artifacts").rglob("*.md"))


def test_a_copied_home_logs_into_its_own_artifact_folder(
    study: Study, home: Path, tmp_path: Path
) -> None:
    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    before = files_of(home)
    copy, report = tmp_path / "a copy_of%it", tmp_path / "report"
    shutil.copytree(home, copy)
    report.mkdir()
    (report / "table.md").write_text("| arm |")
    projection_of(study, copy).log_report(report, "| arm |")
    client = MlflowClient(Home(folder=copy).tracking_uri)
    experiment = client.get_experiment_by_name(study.name)
    assert experiment.artifact_location == Home(folder=copy).artifact_location
    for run in client.search_runs([experiment.experiment_id]):
        client.log_text(run.info.run_id, "seen", "note.md")
    assert files_of(home) == before
    assert len(files_of(copy)) == len(before) + 1 + 7


def test_artifact_locations_outside_the_home_are_not_changed(
    study: Study, home: Path, tmp_path: Path
) -> None:
    client = MlflowClient(Home(folder=home).tracking_uri)
    elsewhere = (tmp_path / "elsewhere").as_uri()
    experiment = client.create_experiment(f"{study.name} of mine", artifact_location=elsewhere)
    run = client.create_run(experiment)
    relocate(home / "mlflow.db")
    assert client.get_experiment(experiment).artifact_location == elsewhere
    assert client.get_run(run.info.run_id).info.artifact_uri == run.info.artifact_uri


def test_artifact_locations_of_other_programs_in_the_home_are_not_changed(
    study: Study, home: Path, tmp_path: Path
) -> None:
    client = MlflowClient(Home(folder=home).tracking_uri)
    elsewhere = (tmp_path / "artifacts").as_uri()
    experiment = client.create_experiment(f"{study.name} of yours", artifact_location=elsewhere)
    run = client.create_run(experiment, tags={"level": "seed"})
    relocate(home / "mlflow.db")
    assert client.get_experiment(experiment).artifact_location == elsewhere
    assert client.get_run(run.info.run_id).info.artifact_uri == run.info.artifact_uri


def test_relocating_a_missing_database_creates_no_file(tmp_path: Path) -> None:
    relocate(tmp_path / "mlflow.db")
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_mlflow_tables_is_not_changed(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
    before = (tmp_path / "mlflow.db").read_bytes()
    relocate(tmp_path / "mlflow.db")
    assert (tmp_path / "mlflow.db").read_bytes() == before


TABLE = "CREATE TABLE experiments (name TEXT)"


def opened(home: Path, name: str = "table1") -> Path:
    """Return the database of a home after MLflow has opened it."""
    home.mkdir()
    here = Home(folder=home)
    Experiment.open(here.tracking_uri, name, artifact_location=here.artifact_location)
    return home / "mlflow.db"


def tables_of(database: Path) -> dict[str, str]:
    with closing(sqlite3.connect(database)) as connection:
        return dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())


def names_of(database: Path) -> set[str]:
    with closing(sqlite3.connect(database)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM experiments")}


def test_a_second_home_gets_the_tables_but_not_the_experiments_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = opened(tmp_path / "a", "first")
    (blank,) = (tmp_path / "cache" / "mixsweep").iterdir()
    assert stat.S_IMODE(blank.stat().st_mode) == 0o600
    assert names_of(blank) == set()
    monkeypatch.setattr("alembic.command.upgrade", None)  # no migration from here on
    second = opened(tmp_path / "b", "second")
    assert tables_of(second) == tables_of(first)
    assert names_of(second) == {"Default", "second"}


def create(database: Path) -> None:
    """Create tables as MLflow would, with an experiment."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(TABLE)
        connection.execute("INSERT INTO experiments VALUES ('mine')")


def never(database: Path) -> None:
    """Fail if tables are created."""
    raise AssertionError(database)


def empty(database: Path) -> Path:
    """Create an empty file."""
    database.touch()
    return database


def kept_blank(folder: Path) -> tuple[Path, Path]:
    """Return the name of a blank database, and the file in which it is kept."""
    blank = folder / "cache" / "blank.db"
    begin(empty(folder / "made.db"), blank, create)
    (kept,) = blank.parent.iterdir()
    return blank, kept


@pytest.mark.parametrize(
    "fault", ["none", "shared", "link", *sorted(DAMAGES.keys() - {"unreadable"})]
)
def test_a_cached_blank_database_is_used_only_if_unchanged_and_private(
    tmp_path: Path, fault: str
) -> None:
    blank, kept = kept_blank(tmp_path)
    match fault:
        case "none":
            pass
        case "shared":
            kept.chmod(0o620)
        case "link":
            kept.symlink_to(kept.rename(tmp_path / "elsewhere.db"))
        case _:
            DAMAGES[fault](kept)
    created: list[Path] = []

    def noted(database: Path) -> None:
        created.append(database)
        create(database)

    database = empty(tmp_path / "mlflow.db")
    begin(database, blank, noted)
    assert bool(created) is (fault != "none")
    assert tables_of(database) == {"experiments": TABLE}
    assert names_of(database) == set()


def test_an_unrelated_database_in_the_cache_is_not_used_and_deleted(tmp_path: Path) -> None:
    blank, kept = kept_blank(tmp_path)
    kept.unlink()
    for name in ("blank.db", f"blank-{'0' * 64}.db"):
        with closing(sqlite3.connect(blank.with_name(name))) as connection, connection:
            connection.execute("CREATE TABLE bookmarks (url TEXT)")
    database = empty(tmp_path / "mlflow.db")
    begin(database, blank, create)
    assert tables_of(database) == {"experiments": TABLE}
    assert list(blank.parent.iterdir()) == [kept]
    begin(empty(tmp_path / "next.db"), blank, never)


def test_partial_blank_databases_of_killed_processes_are_deleted(tmp_path: Path) -> None:
    blank, kept = kept_blank(tmp_path)
    for name in (f"{kept.name}.x1.tmp", "blank.db.4711"):
        blank.with_name(name).write_bytes(b"half")
    kept.unlink()
    begin(empty(tmp_path / "next.db"), blank, create)
    assert list(blank.parent.iterdir()) == [kept]


def test_a_database_that_is_not_empty_keeps_its_content(tmp_path: Path) -> None:
    blank, database = tmp_path / "blank.db", tmp_path / "mlflow.db"
    database.write_bytes(b"mine")
    begin(database, blank, never)
    assert database.read_bytes() == b"mine"


def test_a_blank_database_that_cannot_be_cached_raises_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    database = empty(tmp_path / "mlflow.db")
    begin(database, tmp_path / "file" / "blank.db", create)
    assert tables_of(database) == {"experiments": TABLE}


def test_a_launch_killed_while_mlflow_creates_its_tables_leaves_an_empty_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = tmp_path / "home"

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("alembic.command.upgrade", killed)
        with pytest.raises(KeyboardInterrupt):
            opened(home, "first")
    database = home / "mlflow.db"
    assert database.read_bytes() == b""
    require_tracking(Home(folder=home).tracking_uri, "mixsweep sync")
    Experiment.open(Home(folder=home).tracking_uri, "first", artifact_location=None)
    assert names_of(database) == {"Default", "first"}


def test_a_new_database_is_private_to_its_owner(tmp_path: Path) -> None:
    here = Home(folder=tmp_path)
    Experiment.open(here.tracking_uri, "table1", artifact_location=here.artifact_location)
    assert stat.S_IMODE((tmp_path / "mlflow.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", ["a FIFO", "a dangling link", "a list"])
def test_a_file_at_the_path_of_the_artifact_folder_is_reported(tmp_path: Path, damage: str) -> None:
    place = tmp_path / "artifacts"
    require_artifacts(Home(folder=tmp_path).artifact_location)
    place.touch()
    DAMAGES[damage](place)
    with pytest.raises(DatabaseError, match=r"artifacts is not a folder; .* move it away$"):
        require_artifacts(Home(folder=tmp_path).artifact_location)


def test_an_artifact_folder_that_cannot_be_written_is_reported() -> None:
    with bound_by_modes() as folder:
        place = folder / "artifacts"
        place.mkdir()
        require_artifacts(place.as_uri())
        place.chmod(0o500)
        with pytest.raises(DatabaseError, match="cannot be written by this user"):
            require_artifacts(place.as_uri())


@pytest.mark.parametrize("location", [None, "s3://bucket/artifacts", "mlflow-artifacts:/1"])
def test_remote_artifact_locations_are_not_checked(location: str | None) -> None:
    require_artifacts(location)


def test_a_database_with_an_unreadable_journal_is_not_read(study: Study, home: Path) -> None:
    here = Home(folder=home)
    Experiment.open(here.tracking_uri, study.name, artifact_location=here.artifact_location)
    database = home / "mlflow.db"
    assert experiment_id(here.tracking_uri, study.name) is not None
    assert contents_of(database, study.name) is not None
    os.mkfifo(home / "mlflow.db-journal")
    try:
        assert experiment_id(here.tracking_uri, study.name) is None
        assert contents_of(database, study.name) is None
    finally:
        (home / "mlflow.db-journal").unlink()
