"""Tracking servers that hang or die: training goes on, and `sync` adds what was missed."""

import socket
from pathlib import Path

import pytest

from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, wait_for
from tests.faults.tracking_server import TrackingServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

INCOMPLETE = "when the cause is fixed, run: mixsweep sync "


@pytest.mark.long
def test_a_hanging_tracking_server_does_not_stop_training(
    command_line: CommandLines, undisturbed: CommandLine
) -> None:
    mixsweep = command_line(MLFLOW_HTTP_REQUEST_TIMEOUT="2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Launch(mixsweep, TWO_LAWS, "--tracking-uri", uri) as launch:
            assert INCOMPLETE in launch.end(0).stderr
    mixsweep("sync", TWO_LAWS.file)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed)


@pytest.mark.long
def test_sync_updates_a_tracking_server_that_was_killed_during_a_launch(
    command_line: CommandLines, undisturbed: CommandLine, tmp_path: Path
) -> None:
    mixsweep = command_line()
    server = TrackingServer(tmp_path, port=5000)
    server.start()
    with Launch(mixsweep, TWO_LAWS, "--tracking-uri", server.uri) as launch:
        wait_for(server.has_points)
        launch.stage(TWO_LAWS.study.runs()[0], epochs=10)
        server.kill()
        assert INCOMPLETE in launch.end(0).stderr
    server.start()
    mixsweep("sync", TWO_LAWS.file, "--tracking-uri", server.uri)
    server.kill()
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, database=server.database)
