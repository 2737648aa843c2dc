"""Fault tests run in namespaces (`make faults`) and share one study."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CommandLine
from tests.faults.launches import TWO_LAWS


@pytest.fixture(scope="session", autouse=True)
def namespace() -> None:
    """Fail unless the test runs in namespaces, whose processes and mounts end with the tests."""
    outer = os.environ.get("OUTER_PIDNS")
    if outer is None or str(Path("/proc/self/ns/pid").readlink()) == outer:
        pytest.skip("faults are caused in namespaces of their own only: make faults")


@pytest.fixture(scope="session")
def command_server() -> None:
    """Run each command in its own process; no process of the tests is forked."""


@pytest.fixture(scope="session")
def undisturbed(command_line: Callable[..., CommandLine]) -> CommandLine:
    """Return a home in which the study was run without any fault."""
    mixsweep = command_line()
    mixsweep("run", TWO_LAWS.file, "--slots", "2", "--keep-final-states")
    return mixsweep


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return a folder to mount a disk on; the mount ends with the namespace."""
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder
