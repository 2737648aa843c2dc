"""Tracking servers that hang or die: training goes on, and `sync` brings what they missed."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CommandLine
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

INCOMPLETE = "tracking is incomplete; when the server is back: mixsweep sync two-laws"


def test_a_server_that_hangs_stops_no_training(
    command_line: Callable[..., CommandLine], undisturbed: CommandLine
) -> None:
    mixsweep = command_line(MLFLOW_HTTP_REQUEST_TIMEOUT="2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Launch(mixsweep, TWO_LAWS, "--tracking-uri", uri) as launch:
            assert INCOMPLETE in launch.end(0).stderr
    mixsweep("sync", TWO_LAWS.file)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed)


def test_a_server_killed_in_the_middle_is_brought_up_to_date_by_sync(
    command_line: Callable[..., CommandLine], undisturbed: CommandLine, tmp_path: Path
) -> None:
    mixsweep = command_line()
    server = _Server(tmp_path, port=5000)
    with Launch(mixsweep, TWO_LAWS, "--tracking-uri", server.uri) as launch:
        wait_for(server.has_points)
        launch.stage(TWO_LAWS.study.runs()[0], epochs=10)
        server.kill()
        assert INCOMPLETE in launch.end(0).stderr
    server = _Server(tmp_path, port=5000)
    mixsweep("sync", TWO_LAWS.file, "--tracking-uri", server.uri)
    server.kill()
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, database=server.database)


class _Server:
    """An MLflow server that answers when it is made."""

    def __init__(self, folder: Path, port: int) -> None:
        self.uri = f"http://127.0.0.1:{port}"
        self.database = folder / "server.db"
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "mlflow", "server",
                "--backend-store-uri", f"sqlite:///{self.database}",
                "--artifacts-destination", str(folder / "artifacts"),
                "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
            ],
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

        def answers() -> bool:
            assert self.process.poll() is None
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_for(answers)

    def has_points(self) -> bool:
        with sqlite3.connect(self.database) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'metrics'")
            found = tables.fetchone() and connection.execute("SELECT 1 FROM metrics").fetchone()
        connection.close()
        return bool(found)

    def kill(self) -> None:
        """Kill the server and the workers it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
