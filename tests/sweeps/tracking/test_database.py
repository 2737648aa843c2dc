import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient

from sweeps.home import Home
from sweeps.study import Study
from sweeps.tracking.database import relocate
from sweeps.tracking.experiment import Experiment
from tests.sweeps.tracked import projection_of, reconcile, results_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"
)


def files_of(home: Path) -> list[Path]:
    return sorted(path.relative_to(home) for path in (home / "artifacts").rglob("*.md"))


def test_a_copied_home_logs_into_itself(study: Study, home: Path, tmp_path: Path) -> None:
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


def test_artifacts_that_are_in_no_home_stay_where_they_are(
    study: Study, home: Path, tmp_path: Path
) -> None:
    client = MlflowClient(Home(folder=home).tracking_uri)
    elsewhere = (tmp_path / "elsewhere").as_uri()
    experiment = client.create_experiment(f"{study.name} of mine", artifact_location=elsewhere)
    run = client.create_run(experiment)
    relocate(home / "mlflow.db")
    assert client.get_experiment(experiment).artifact_location == elsewhere
    assert client.get_run(run.info.run_id).info.artifact_uri == run.info.artifact_uri


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    relocate(tmp_path / "mlflow.db")
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_tables_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
    before = (tmp_path / "mlflow.db").read_bytes()
    relocate(tmp_path / "mlflow.db")
    assert (tmp_path / "mlflow.db").read_bytes() == before


def test_a_new_database_is_its_owners_alone(tmp_path: Path) -> None:
    here = Home(folder=tmp_path)
    Experiment.open(here.tracking_uri, "table1", artifact_location=here.artifact_location)
    assert stat.S_IMODE((tmp_path / "mlflow.db").stat().st_mode) == 0o600
