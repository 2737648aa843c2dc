"""`mixsweep submit` against real heads: refused, followed, stopped, resubmitted, finished."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sweeps.study_file import load_study
from tests.cluster.head import Head, started_head
from tests.conftest import CommandLine
from tests.faults.launches import wait_for

MINE = """
study: mine
base: {data: {name: digits}, model: {name: mlp}, epochs: 2, batch_size: 128}
arms: {erm: {mix.law: erm}, wild: {mix.law: erm, optimizer.lr: 1.0e+30}}
seeds: 1
"""
LONGER = ("--set", "base.epochs=400", "--set", "seeds=1")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    with started_head() as head:
        yield head


def _submit(mixsweep: CommandLine, head: Head, *arguments: str, code: int = 0) -> str:
    ran = mixsweep("submit", *arguments, "--address", head.address, code=code)
    return ran.stdout + ran.stderr


def _jobs(head: Head, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in head.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", head.address)
    from ray.job_submission import JobSubmissionClient

    return JobSubmissionClient(head.address)


@pytest.mark.parametrize(
    ("token", "said"), [(None, "asks for a token"), ("not-this-one", "refuses this token")]
)
def test_a_wrong_or_missing_token_is_refused_in_one_message(
    command_line: Callable[..., CommandLine],
    head: Head,
    tmp_path: Path,
    token: str | None,
    said: str,
) -> None:
    extra = {"HOME": str(tmp_path)} | ({} if token is None else {"RAY_AUTH_TOKEN": token})
    output = _submit(command_line(**extra), head, "digits", code=2)
    assert said in output
    assert "RAY_AUTH_TOKEN_PATH" in output
    assert len(output.strip().splitlines()) == 1


class _Open(BaseHTTPRequestHandler):
    """A cluster as it answers without token authentication."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"ray_version": "2.60.0"}')

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_an_open_cluster_is_refused(command_line: Callable[..., CommandLine]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Open) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        ran = command_line()("submit", "digits", "--address", address, code=2)
        server.shutdown()
    assert "runs anyone's code" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_what_cannot_become_a_job_is_refused_before_any_cluster_is_asked(
    command_line: Callable[..., CommandLine], tmp_path: Path
) -> None:
    mixsweep = command_line()
    nobody = ("--address", "http://127.0.0.1:1")
    outside = tmp_path / "outside.yaml"
    outside.write_text(MINE)
    secret = "http://me:swordfish@tracking:5000"
    refused = {
        "in the working directory": ("submit", str(outside), *nobody),
        "base.epochs": ("submit", "digits", "--set", "base.epochs=no", *nobody),
        "holds no password": ("submit", "digits", "--tracking-uri", secret, *nobody),
        "no Ray cluster answers": ("submit", "digits", *nobody),
        "http://HOST:PORT": ("submit", "digits", "--address", "somewhere"),
    }
    for said, arguments in refused.items():
        ran = mixsweep(*arguments, code=2)
        assert said in ran.stderr
        assert "swordfish" not in ran.stderr
        assert "Traceback" not in ran.stderr


@pytest.mark.long
def test_a_job_that_is_stopped_and_submitted_again_ends_like_a_local_run(
    command_line: Callable[..., CommandLine], head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, mixsweep = command_line(), command_line(**head.environment())
    local("run", "digits", *LONGER)
    study = load_study("digits", LONGER[1::2])
    client = _jobs(head, monkeypatch)

    following = mixsweep.start("submit", "digits", *LONGER, "--address", head.address)
    job = wait_for(lambda: next((j for j in client.list_jobs() if j.status == "RUNNING"), None))
    wait_for(lambda: list((mixsweep.home / "store").glob("**/*")) or None)
    busy = _submit(mixsweep, head, "digits", *LONGER, code=3)
    assert job.submission_id in busy
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=60)
    assert following.returncode == 130
    assert f"ray job stop {job.submission_id}" in err
    assert "Traceback" not in err
    assert not client.get_job_status(job.submission_id).is_terminal()
    assert "midpoint seed 0" in client.get_job_logs(job.submission_id) or out

    assert client.stop_job(job.submission_id)
    wait_for(lambda: client.get_job_status(job.submission_id).is_terminal() or None)
    said = _submit(mixsweep, head, "digits", *LONGER)
    assert "midpoint seed 0 finished" in said
    assert mixsweep.report("digits", "runs.csv") == local.report("digits", "runs.csv")
    provenance = json.loads(mixsweep.report("digits", "provenance.json"))
    assert provenance["submission_id"] in said
    assert [run["outcome"] for run in provenance["runs"]] == ["complete"] * len(study.runs())

    elsewhere = command_line()
    store = str(mixsweep.home / "store")
    status = elsewhere.json("status", "digits", *LONGER, "--store", store)
    assert all(arm["finished"] == arm["expected"] for arm in status["arms"].values())
    assert "nothing to train" in _submit(mixsweep, head, "digits", *LONGER)


@pytest.mark.long
def test_a_folder_with_nothing_but_a_study_file_is_enough(
    command_line: Callable[..., CommandLine],
    head: Head,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cluster has mixsweep installed; a code of 1 and a commit come through."""
    (tmp_path / "mine.yaml").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    said = _submit(command_line(**head.environment()), head, "mine.yaml", code=1)
    assert "diverged" in said
    (tmp_path / ".gitignore").write_text("*.yaml\n")
    said = _submit(command_line(**head.environment()), head, "mine.yaml", code=2)
    assert "mine.yaml: not uploaded" in said


@pytest.mark.long
def test_the_plain_road_of_ray_does_the_same(
    command_line: Callable[..., CommandLine], head: Head
) -> None:
    mixsweep = command_line(**head.environment())
    ray = [sys.executable, "-m", "ray.scripts.scripts", "job", "submit"]
    job = [
        "env", "MIXSWEEP_COMMIT=0123abc", sys.executable, "-m", "sweeps.cli", "run", "digits",
        "--home", str(mixsweep.home),
    ]  # fmt: skip
    files = ["--working-dir", ".", "--runtime-env", "cluster/runtime-env.yaml"]
    subprocess.run(
        [*ray, "--address", head.address, *files, "--", *job],
        cwd=Path(__file__).parents[2], env=mixsweep.environment(), check=True, capture_output=True,
    )  # fmt: skip
    local = command_line()
    local("run", "digits")
    assert mixsweep.report("digits", "runs.csv") == local.report("digits", "runs.csv")
    provenance = json.loads(mixsweep.report("digits", "provenance.json"))
    assert provenance["code"]["commit"] == "0123abc"
