import json
import subprocess
from pathlib import Path

import pytest

from mixsweep.cli import submission
from reports.numbers import code_origin
from reports.numbers.code_origin import describe_code


@pytest.fixture(autouse=True)
def _source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(code_origin, "SOURCE", tmp_path)


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_of_a_source_tree_is_found_with_its_changes(tmp_path: Path) -> None:
    git(tmp_path, "init", "-b", "topic")
    published = tmp_path / "reports" / "published" / "table.csv"
    published.parent.mkdir(parents=True)
    published.write_text("1\n")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file", "reports")
    git(tmp_path, "commit", "-m", "one")
    published.write_text("2\n")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert describe_code() == {"commit": commit, "branch": "topic", "dirty": False}
    (tmp_path / "file").write_text("two")
    assert describe_code()["dirty"] is True


def test_an_installed_copy_records_the_commit_of_its_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = {"commit": "0123456789", "branch": "main", "dirty": False}
    noted = tmp_path / "reports" / "built_from.json"
    noted.parent.mkdir()
    noted.write_text(json.dumps(code))
    monkeypatch.setenv("MIXSWEEP_COMMIT", "of the job that runs it")
    assert describe_code() == code
    noted.write_text("{")
    found = describe_code()
    assert found["commit"] == "of the job that runs it"


def test_a_job_records_the_commit_of_its_submission(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = {"commit": "0123abc", "branch": "topic", "dirty": True}
    monkeypatch.chdir(tmp_path)
    for name, value in code_origin.code_variables(code).items():
        monkeypatch.setenv(name, value)
    job = {"runtime_env": {}, "metadata": {"job_submission_id": "digits-1"}}
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps(job))
    assert describe_code() == code
    assert code_origin.origin_tags() == {
        "submission_id": "digits-1",
        "commit": "0123abc",
        "branch": "topic",
        "dirty": "True",
        "mlflow.source.git.commit": "0123abc",
        "mlflow.source.git.branch": "topic",
    }


def test_the_commit_of_another_repository_is_never_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A user's own repository, in which an installed copy is used."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    (tmp_path / "installed").mkdir()
    monkeypatch.setattr(code_origin, "SOURCE", tmp_path / "installed")
    monkeypatch.delenv("MIXSWEEP_COMMIT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert describe_code() is None
    monkeypatch.setattr(submission, "checkout", lambda: None)
    assert "MIXSWEEP_COMMIT" not in submission._variables()
