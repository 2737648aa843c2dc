"""`mixsweep submit` on real heads: refused, followed, stopped, submitted again, finished."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from mixsweep.cli import submission
from reports.numbers.code_origin import describe_code
from tests.cluster.head import Head, started_head
from tests.conftest import CommandLine, CommandLines
from tests.faults.launches import Task, wait_for
from tests.sweeps.running.proxy import LOGIN, needs_nginx, proxy

MINE = """
study: mine
base: {data: {name: digits}, model: {name: mlp}, epochs: 2, batch_size: 128}
arms:
  erm: {mix.law: erm}
  wild: {mix.law: erm, optimizer.name: sgd, optimizer.weight_decay: 1.0e+30}
seeds: 1
"""
LONGER = Task("digits", ("base.epochs=400", "seeds=1"))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    with started_head() as head:
        yield head


def _submit(mixsweep: CommandLine, head: Head, *arguments: str, code: int = 0) -> str:
    ran = mixsweep("submit", *arguments, "--address", head.address, code=code)
    return ran.stdout + ran.stderr


def _jobs(head: Head, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", head.address)
    from ray.job_submission import JobSubmissionClient

    # Ray reads RAY_AUTH_MODE when it is imported, which another test may have made happen.
    token = head.token.read_text()
    return JobSubmissionClient(head.address, headers={"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize(
    ("place", "absolute"),
    [
        ("elsewhere/store", "{here}/elsewhere/store"),
        ("sqlite:///runs/mlflow.db", "sqlite:///{here}/runs/mlflow.db"),
        ("sqlite:////runs/mlflow.db", "sqlite:////runs/mlflow.db"),
        ("http://tracking:5000", "http://tracking:5000"),
        ("s3://bucket/store", "s3://bucket/store"),
    ],
)
def test_paths_of_a_job_are_made_absolute(place: str, absolute: str) -> None:
    assert submission._absolute(place) == absolute.format(here=Path.cwd())


@pytest.mark.long
def test_a_job_that_is_stopped_and_submitted_again_ends_like_a_local_run(
    command_line: CommandLines, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, mixsweep = command_line(), command_line(**head.environment())
    local("run", *LONGER.arguments)
    client, store = _jobs(head, monkeypatch), mixsweep.home / "store"

    following = mixsweep.start("submit", *LONGER.arguments, "--address", head.address)
    job = wait_for(lambda: next((j for j in client.list_jobs() if j.status == "RUNNING"), None))
    wait_for(lambda: any(LONGER.acknowledged(store).values()) or None)
    assert job.submission_id in _submit(mixsweep, head, *LONGER.arguments, code=3)
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=60)
    assert following.returncode == 130
    assert "midpoint seed 0" in out
    assert f"ray job stop {job.submission_id}" in err
    assert "Traceback" not in err
    assert not client.get_job_status(job.submission_id).is_terminal()

    assert client.stop_job(job.submission_id)
    wait_for(lambda: client.get_job_status(job.submission_id).is_terminal() or None)
    before = LONGER.acknowledged(store)
    assert 0 < sum(map(len, before.values())) < 400 * len(LONGER.study.runs())

    said = _submit(mixsweep, head, *LONGER.arguments)
    after = LONGER.acknowledged(store)
    assert all(after[key][: len(facts)] == facts for key, facts in before.items())
    assert mixsweep.report("digits", "runs.csv") == local.report("digits", "runs.csv")
    provenance = json.loads(mixsweep.report("digits", "provenance.json"))
    assert provenance["submission_id"] != job.submission_id
    assert provenance["submission_id"] in said
    assert provenance["code"] == describe_code()
    with closing(sqlite3.connect(mixsweep.home / "mlflow.db")) as database:
        tracked = "SELECT DISTINCT value FROM tags WHERE key = 'mlflow.source.git.commit'"
        assert database.execute(tracked).fetchall() == [(provenance["code"]["commit"],)]

    status = command_line().json("status", *LONGER.arguments, "--store", str(store))
    assert all(arm["finished"] == arm["expected"] for arm in status["arms"].values())
    assert "nothing to train" in _submit(mixsweep, head, *LONGER.arguments)


@needs_nginx
@pytest.mark.long
def test_a_job_through_a_login_is_followed_and_its_results_are_fetched(
    command_line: CommandLines, head: Head, tmp_path: Path
) -> None:
    """nginx with TLS of an own authority and a login stands before the head."""
    small = ("digits", "--set", "seeds=1", "--set", "base.epochs=2")
    local = command_line()
    local("run", *small)
    with proxy(head.address, tmp_path) as before:
        address = f"{before}/basic"
        login = json.dumps({"Authorization": LOGIN})
        trusted = {"REQUESTS_CA_BUNDLE": str(tmp_path / "ca.pem")}  # replaces the machine's
        mixsweep = command_line(**head.environment(), **trusted, RAY_JOB_HEADERS=login)
        ran = mixsweep("submit", *small, "--address", address)
        assert ran.stdout.strip()
        assert mixsweep.report("digits", "runs.csv") == local.report("digits", "runs.csv")
        refused = command_line(**head.environment(), **trusted)(
            "submit", *small, "--address", address, code=2
        )
        assert 'Basic realm="Ray of the lab"' in refused.stderr
        (line,) = (line for line in ran.stderr.splitlines() if line.startswith("fetch "))
        # The token goes in a header of its own, which `ray job` must be told behind a login.
        token = f"Bearer {head.token.read_text()}"
        headers = json.dumps({"Authorization": LOGIN, "X-Ray-Authorization": token})
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        subprocess.run(
            ["sh", "-ec", line.removeprefix("fetch").strip()], cwd=tmp_path, check=True,
            env=mixsweep.environment() | {"RAY_JOB_HEADERS": headers, "PATH": path},
        )  # fmt: skip
    fetched = tmp_path / "reports" / "digits" / "runs.csv"
    assert fetched.read_bytes() == local.report("digits", "runs.csv")
    other = command_line(tmp_path / "other")
    other("add", str(tmp_path / "exports" / "digits.mixsweep.zip"))
    other("report", "digits", *small[1:])


def test_credentials_beside_a_study_are_not_listed(
    command_line: CommandLines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".env.local", "server.pem", "mine.yaml"):
        (tmp_path / name).write_text(MINE)
    monkeypatch.chdir(tmp_path)
    listed = command_line()("submit", "mine.yaml", "--list-files").stdout
    packages = ("mixsweep/", "mixup_core/", "sweeps/", "reports/", "cluster/")
    names = [line.split()[1] for line in listed.splitlines()]
    assert [name for name in names if not name.startswith(packages)] == ["mine.yaml"]


@pytest.mark.long
def test_no_secret_of_client_or_cluster_is_written_to_a_file(
    command_line: CommandLines, head: Head, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Token, keys and passwords: not in home, database, report, logs, upload or description."""
    # Drawn anew: the source of this test is among what other jobs upload.
    wrong, *canaries = (token_hex(16) for _ in range(5))
    names = ("MLFLOW_TRACKING_PASSWORD", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "PGPASSWORD")
    secrets = {"RAY_AUTH_TOKEN": head.token.read_text(), **dict(zip(names, canaries, strict=True))}
    desk = tmp_path / "desk"
    desk.mkdir()
    (desk / "mine.yaml").write_text(MINE)
    for name in ("ray_token", "keys.env", "my.token"):
        (desk / name).write_text("\n".join(secrets.values()))
    monkeypatch.chdir(desk)
    mixsweep = command_line(tmp_path / "home", **{"RAY_AUTH_MODE": "token"} | secrets)
    said = _submit(mixsweep, head, "mine.yaml", "--tracking-uri", "sqlite:///tracked.db", code=1)
    refused = _submit(command_line(RAY_AUTH_TOKEN=wrong), head, "mine.yaml", code=2)
    jobs = _jobs(head, monkeypatch).list_jobs()
    (job,) = [job for job in jobs if str(mixsweep.home) in job.entrypoint]

    session = head.token.parent
    places = [mixsweep.home, session, desk / "tracked.db"]
    files = [
        file
        for place in places
        for file in (place.rglob("*") if place.is_dir() else [place])
        if file.is_file() and file != head.token
    ]
    written = {str(file): file.read_bytes() for file in files}
    written |= {"said": (said + refused).encode(), "described": str(job).encode()}
    assert sum(job.submission_id.encode() in content for content in written.values()) > 3
    assert any("tracked.db" in name for name in written)
    assert any(name.endswith("provenance.json") for name in written)
    for secret in (*secrets.values(), wrong):
        found = [name for name, content in written.items() if secret.encode() in content]
        assert not found, secret
