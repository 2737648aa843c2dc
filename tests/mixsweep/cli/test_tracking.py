"""sync and ui: no run stays RUNNING, and the pages serve this machine alone."""

import json
import os
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click
import psutil
import pytest
import requests
from click.testing import CliRunner

from mixsweep.cli.main import commands
from mixsweep.request import DONE, RefusedError
from sweeps.machine.home import Home
from sweeps.tracking.connection import connect
from sweeps.tracking.rows import RunProgress
from sweeps.tracking.study_log import StudyLog
from tests.conftest import CommandLines
from tests.faults.launches import lasting
from tests.mixsweep.cli.conftest import type_in
from tests.mixsweep.cli.trained import train
from tests.tracked_runs import read_runs

pytestmark = [pytest.mark.slow]


def statuses_in(home: Path) -> dict[str, int]:
    """Return the number of MLflow's runs by their status, without those in its trash."""
    counted = "SELECT status, count(*) FROM runs WHERE lifecycle_stage = 'active' GROUP BY status"
    with closing(sqlite3.connect(home / "mlflow.db")) as connection:
        return dict(connection.execute(counted).fetchall())


@pytest.mark.parametrize("words", [("sync", "digits"), ("run", "digits", "--engine", "inline")])
def test_an_interrupt_during_an_mlflow_update_stops_it_and_leaves_no_run_marked_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """The third run that is written interrupts the command."""
    train(tmp_path / "runs")
    written, write = [], StudyLog.write_run

    def interrupting(log: StudyLog, progress: RunProgress) -> None:
        written.append(progress)
        if len(written) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        write(log, progress)

    with monkeypatch.context() as patch:
        patch.setattr(StudyLog, "write_run", interrupting)
        assert isinstance(type_in(*words).exception, click.Abort)
    assert not lasting(lambda: [t for t in threading.enumerate() if t.name == "tracker"])
    assert len(written) < 6
    assert statuses_in(tmp_path / "runs").keys() <= {"FINISHED", "KILLED"}
    assert type_in("sync", "digits").return_value == DONE
    assert statuses_in(tmp_path / "runs") == {"FINISHED": 6 + 3}


def test_settings_of_a_study_that_are_synced_one_after_the_other_stay_in_mlflow(
    tmp_path: Path,
) -> None:
    home, one = tmp_path / "runs", ("--set", "seeds=1")
    own = train(home, "digits", "seeds=1")
    variants = ((), ("--set", "base.epochs=2"))
    other = train(home, "digits", "seeds=1", "base.epochs=2")
    for words in (*variants, ()):
        assert type_in("sync", "digits", *one, *words).return_value == DONE
    tracked = read_runs(Home(folder=home).tracking_uri, "digits")
    keys = sorted(run.key for study in (own, other) for run in study.runs())
    assert sorted(run.run_key for run in tracked) == keys


SEARCH = "/api/2.0/mlflow/experiments/search"
CREATE = "/api/2.0/mlflow/experiments/create"

HOSTILE = {
    "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE": "true",
    "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS": "*",
    "MLFLOW_SERVER_ALLOWED_HOSTS": "*",
    "MLFLOW_HOST": "0.0.0.0",
    "MLFLOW_ARTIFACTS_ONLY": "true",
    "MLFLOW_STATIC_PREFIX": "/elsewhere",
    "MLFLOW_GUNICORN_OPTS": "--bind 0.0.0.0:0",
    "MLFLOW_UVICORN_OPTS": "--host 0.0.0.0",
    "MLFLOW_READ_REPLICA_BACKEND_STORE_URI": "sqlite:////no/such/place.db",
    "GUNICORN_CMD_ARGS": "--bind 0.0.0.0:0",
    "UVICORN_UDS": "/no/such/place",
    "UVICORN_HOST": "0.0.0.0",
    "WEB_CONCURRENCY": "7",
}
"""Options that MLflow's server and its workers read from the environment."""

MODULES = ("mlflow", "uvicorn", "flask", "fastapi", "click", "torch", "numpy", "sqlalchemy")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Working directory with files named like modules; each writes its name when imported."""
    folder = tmp_path_factory.mktemp("desk")
    for name in MODULES:
        (folder / f"{name}.py").write_text(
            f"open({str(folder / 'imported')!r}, 'a').write({name!r})"
        )
    return folder


@pytest.fixture(scope="module")
def server(command_line: CommandLines, desk: Path) -> Iterator[tuple[int, int]]:
    """Return pid and port of a server started in a hostile environment."""
    mixsweep = command_line()
    train(mixsweep.home)
    mixsweep("sync", "digits")
    extra = {**HOSTILE, "PYTHONSAFEPATH": "1"}
    hostile = replace(mixsweep, extra=extra, prefix=("env", "--chdir", str(desk)))
    with hostile.serving("digits") as (process, port):
        yield process.pid, port


@pytest.fixture(scope="module")
def port(server: tuple[int, int]) -> int:
    return server[1]


def test_the_server_listens_on_the_loopback_despite_environment_variables(
    server: tuple[int, int],
) -> None:
    pid, port = server
    process = psutil.Process(pid)
    found = {
        tuple(socket.laddr)
        for each in (process, *process.children(recursive=True))
        for socket in each.net_connections()
        if socket.status == psutil.CONN_LISTEN
    }
    assert found == {("127.0.0.1", port)}


def test_the_server_imports_no_file_of_the_working_directory(
    server: tuple[int, int], desk: Path
) -> None:
    assert _status(server[1], "GET", "/health") == 200
    assert not (desk / "imported").exists(), (desk / "imported").read_text()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("localhost:8080", 200),  # `ssh -L 8080:localhost:5000` from another machine
        ("127.0.0.1:8080", 200),
        ("localhost", 200),
        ("elsewhere.example", 403),
        ("elsewhere.example:{port}", 403),
        ("localhost.elsewhere.example:{port}", 403),
        ("localhost.elsewhere.example:8080", 403),
        ("localhost.:8080", 403),
        ("127.0.0.1.elsewhere.example:{port}", 403),
        ("10.elsewhere.example:{port}", 403),  # `10.*` is on MLflow's own list
        ("192.168.1.7:{port}", 403),
        ("10.1.2.3:{port}", 403),
        ("0.0.0.0:{port}", 403),
        ("", 403),
    ],
)
def test_requests_with_a_foreign_host_header_are_refused(port: int, host: str, status: int) -> None:
    for path in ("/", f"{SEARCH}?max_results=1"):
        assert _status(port, "GET", path, Host=host.format(port=port)) == status


@pytest.mark.parametrize("origin", ["http://elsewhere.example", "https://127.0.0.1.nip.io", "null"])
def test_requests_from_another_origin_cannot_change_data(port: int, origin: str) -> None:
    body = json.dumps({"name": f"planted by {origin}"})
    kind = {"Content-Type": "application/json"}
    assert _status(port, "POST", CREATE, body, Origin=origin, **kind) == 403
    assert _status(port, "POST", CREATE, body, Origin=origin) == 403
    here = f"http://127.0.0.1:{port}"
    assert _status(port, "POST", CREATE, body, Origin=here, **kind) == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_port_used_by_another_program_is_refused_and_no_link_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr("os.execve", lambda *arguments: pytest.fail("a server starts"))
    connect(f"sqlite:///{tmp_path}/mlflow.db").create_experiment("digits")
    with socket.create_server((host, 0)) as stranger:
        port = stranger.getsockname()[1]
        arguments = ["ui", "--home", str(tmp_path), "--port", str(port)]
        said = CliRunner().invoke(commands, arguments)
    assert isinstance(said.exception, RefusedError)
    assert str(said.exception).startswith(f"--port {port}: another program uses this port; choose")
    assert "http" not in said.output


def _status(port: int, method: str, path: str, body: str | None = None, **headers: str) -> int:
    address = f"http://127.0.0.1:{port}{path}"
    return requests.request(method, address, data=body, headers=headers, timeout=20).status_code
