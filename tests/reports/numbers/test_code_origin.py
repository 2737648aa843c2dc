import json
import os
import subprocess
from pathlib import Path

import pytest

from reports.numbers import code_origin
from reports.numbers.code_origin import describe_code, describe_repository


def test_the_commit_of_a_source_tree_is_found_with_its_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(code_origin, "SOURCE", tmp_path)
    git("init", "-b", "topic")
    published = tmp_path / "reports" / "published" / "table.csv"
    published.parent.mkdir(parents=True)
    published.write_text("1\n")
    (tmp_path / "file").write_text("one")
    git("add", "file", "reports")
    git("commit", "-m", "one")
    published.write_text("2\n")
    assert describe_code() == {
        "commit": git("rev-parse", "HEAD"),
        "branch": "topic",
        "dirty": False,
    }
    (tmp_path / "file").write_text("two")
    code = describe_code()
    assert code["dirty"] is True


def test_an_installed_copy_records_the_commit_of_its_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = {"commit": "0123456789", "branch": "main", "dirty": False}
    noted = tmp_path / "reports" / "built_from.json"
    noted.parent.mkdir()
    noted.write_text(json.dumps(code))
    monkeypatch.setattr(code_origin, "SOURCE", tmp_path)
    monkeypatch.setenv("MIXSWEEP_COMMIT", "of the job that runs it")
    assert describe_code() == code
    noted.write_text("{")
    found = describe_code()
    assert found["commit"] == "of the job that runs it"


def test_a_job_records_the_commit_of_its_submission(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = {"commit": "0123abc", "branch": "topic", "dirty": True}
    monkeypatch.setattr(code_origin, "SOURCE", tmp_path)
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


def _program(place: Path, canary: Path) -> str:
    place.write_text(f"#!/bin/sh\ntouch {canary}\nexec cat\n")
    place.chmod(0o755)
    return str(place)


def test_no_program_that_a_repository_configures_is_run(tmp_path: Path) -> None:
    canary, folder = tmp_path / "ran", tmp_path / "repository"
    program = _program(tmp_path / "program", canary)

    def git(*arguments: str) -> None:
        own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
        subprocess.run(
            ["git", "-C", str(folder), *own, *arguments], check=True, capture_output=True
        )

    folder.mkdir()
    git("init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a")
    (folder / ".gitattributes").write_text("* filter=odd.name\n")
    git("add", ".")
    git("commit", "-qm", "a")
    git("submodule", "add", "-q", str(folder), "below")
    git("commit", "-qm", "b")
    for repository in (folder / ".git", folder / ".git" / "modules" / "below"):
        with (repository / "config").open("a") as config:
            config.write(
                f'[core]\n\tfsmonitor = {program}\n[filter "odd.name"]\n\tclean = {program}\n'
                f"\tprocess = {program}\n\trequired = true\n"
            )
        _program(repository / "hooks" / "post-index-change", canary)
    os.utime(folder / "a.txt", (1, 1))
    found = describe_repository(folder)
    assert not canary.exists()
    assert (found["branch"], found["dirty"]) == ("main", False)
    (folder / "a.txt").write_text("b")
    assert describe_repository(folder) == found | {"dirty": True}
    assert not canary.exists()
    subprocess.run(["git", "-C", str(folder), "status"], check=False, capture_output=True)
    assert canary.exists(), "git itself runs the program"
