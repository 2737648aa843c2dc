"""A tracking server that dies: training goes on, and `sync` adds what was missed."""

from pathlib import Path

import pytest

from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, wait_for
from tests.faults.tracking_server import TrackingServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

INCOMPLETE = "when the cause is fixed, run: mixsweep sync "


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
