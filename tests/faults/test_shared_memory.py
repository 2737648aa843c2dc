"""A launch names the cause at once if /dev/shm, which Ray needs, cannot be written."""

import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.conftest import CommandLines
from tests.faults.launches import TWO_LAWS

pytestmark = [pytest.mark.slow]


@pytest.fixture
def _read_only() -> Iterator[None]:
    """Make the shared memory of this namespace read-only."""
    subprocess.run(["mount", "-o", "remount,ro", "/dev/shm"], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", "/dev/shm"], check=True)


@pytest.mark.usefixtures("_read_only")
def test_a_launch_with_read_only_shared_memory_is_refused_before_ray_starts(
    command_line: CommandLines,
) -> None:
    mixsweep, began = command_line(), time.monotonic()
    said = mixsweep("run", TWO_LAWS.file, "--slots", "1", code=2)
    (line,) = (line for line in said.stderr.splitlines() if "/dev/shm" in line)
    assert line.startswith("/dev/shm cannot be written by this user")
    assert "--engine inline" in line
    assert "Traceback" not in said.stderr
    assert time.monotonic() - began < 30
