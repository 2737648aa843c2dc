import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soak.warm import Warm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def sleep() -> None:
    """Let a command hang; a server calls it."""
    time.sleep(60)


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    with Warm.started() as warm:
        yield warm


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "MIXSWEEP_HOME": str(home)}


def test_a_fork_has_the_exit_code_and_the_output_of_the_command(warm: Warm, tmp_path: Path) -> None:
    ended = warm.run(["--version"], environment(tmp_path), patience=60)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("mixsweep ")
    refused = warm.run(["status", "no-such-study"], environment(tmp_path), patience=60)
    assert refused.code == 2
    assert "no-such-study" in refused.err


def test_a_fork_runs_without_streams(warm: Warm, tmp_path: Path) -> None:
    assert warm.start(["list"], environment(tmp_path), streams={}).wait(60) == 0


def test_a_fork_can_be_killed(warm: Warm, tmp_path: Path) -> None:
    then = f"{__name__}:sleep"
    forked = warm.start(["list"], environment(tmp_path), streams={}, then=then)
    assert forked.poll() is None
    forked.kill()
    assert forked.wait(60) == -signal.SIGKILL


def test_a_killed_hanging_fork_prints_its_stack_frames(warm: Warm, tmp_path: Path) -> None:
    with tempfile.TemporaryFile() as said:
        streams = {2: said.fileno()}
        then = f"{__name__}:sleep"
        forked = warm.start(["list"], environment(tmp_path), streams=streams, then=then)
        assert forked.wait_or_kill(2) is None
        said.seek(0)
        assert b"in sleep" in said.read()
