"""Scratch: the temporary folder of a driver, and the clean-up after launches that were killed.

A launch is one call of `mixsweep run`. The path of the folder is short enough for Ray's sockets. A
process belongs to a launch if its environment names the launch's folder: only Ray's processes are
started with it, and what they start; no two launches have the same folder.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil

from mixup_core.temporary import PREFIX, clear, collect, left_folders, temporary_folder
from sweeps.machine.processes import lives, wait_for_end
from sweeps.machine.watchdog import cleaned_by_force

MARK = "MIXSWEEP_LAUNCH"
"""Environment variable of Ray's processes with the path of the folder of their launch."""
_SOCKET_PATH = 107
"""Longest path of a Unix socket, in bytes (unix(7), without the final zero)."""
_RAY = len("/ray/session_2026-11-21_22-01-02_123456_4194304/sockets/plasma_store")
_OWN = len(f"/{PREFIX}4194304-0000~")
_PASSES = 3
"""Number of passes over the processes to kill, as one may start another during a pass."""
_PATIENCE = 1.0
"""Seconds to wait until killed processes have ended."""


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a private temporary folder for this driver, and delete it after the `with` block.

    The processes of killed launches are killed first, those of this launch at the end. Ray makes
    the subfolder `ray` accessible to all users.
    """
    # Order matters: end the processes, then delete their folders. Otherwise a process could write
    # to its folder again; tests/sweeps/machine/test_scratch.py fails.
    end_orphans()
    with temporary_folder(_place()) as folder:
        try:
            with cleaned_by_force(partial(_leave, folder)):
                yield folder
        finally:
            end_members(folder)


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables in the `with` block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def marked(folder: Path) -> dict[str, str]:
    """Return the environment variables with which the processes of a launch start."""
    # With the second one, setproctitle, which Ray uses, leaves the environment readable.
    return {MARK: str(folder), "SPT_NOENV": "1"}


def clear_scratch() -> None:
    """Clean up after launches that were killed: end their processes and delete their folders."""
    end_orphans()
    collect(_place())


def end_orphans() -> None:
    """Kill the processes of dead launches; an agent of Ray runs for a minute after its raylet."""
    for folder in left_folders(_place()):
        end_members(folder)


def end_members(folder: Path) -> None:
    """Kill the processes of the launch with this folder."""
    for _ in range(_PASSES):
        killed = []
        for process in members(folder):
            with suppress(psutil.Error):
                process.kill()
                killed.append(process)
        if not killed:
            return
        wait_for_end(killed, _PATIENCE)


def members(folder: Path) -> list[psutil.Process]:
    """Return the running processes of the launch with this folder."""
    processes = []
    with suppress(psutil.Error, OSError, IndexError):  # without `/proc` psutil has no first process
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):  # it has ended, or belongs to another user
                if process.environ().get(MARK) == str(folder) and lives(process):
                    processes.append(process)
    return processes


def _leave(folder: Path) -> None:
    end_members(folder)
    with suppress(OSError):
        clear(folder)


def _place() -> Path:
    """Return the system's folder for temporary files; /tmp if its path is too long for sockets."""
    folder = Path(tempfile.gettempdir()).absolute()
    has_room = len(os.fsencode(folder)) + _OWN + _RAY <= _SOCKET_PATH
    return folder if has_room else Path("/tmp")  # noqa: S108
