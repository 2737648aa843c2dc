"""Scratch: the temporary folder of a driver, and the clean-up after launches that were killed.

A launch is one call of `mixsweep run`. The path of the folder is short enough for Ray's sockets.
"""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil

from mixup_core.temporary import PREFIX, clear, collect, left_folders, temporary_folder
from sweeps.machine.processes import adopting, below, children, lives, wait_for_end
from sweeps.machine.watchdog import cleaned_by_force

_SOCKET_PATH = 107
"""Longest path of a Unix socket, in bytes (unix(7), without the final zero)."""
_RAY = len("/ray/session_2026-11-21_22-01-02_123456_4194304/sockets/plasma_store")
_OWN = len(f"/{PREFIX}4194304-0000~")
_PASSES = 3
"""Number of passes over the processes to kill, because a process may start another during a
pass.
"""
_PATIENCE = 1.0
"""Seconds to wait until killed processes have ended."""


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a private temporary folder for this driver, and delete it after the `with` block.

    First, the processes that killed launches left running are killed, and their folders deleted. At
    the end of the block, the processes that this driver started are killed. Ray uses the subfolder
    `ray`, and makes it accessible to all users.
    """
    end_orphans()
    with temporary_folder(_place()) as folder, adopting():
        try:
            with cleaned_by_force(partial(_leave, folder)), recorded_members(folder):
                yield folder
        finally:
            end_members(folder)


def clear_scratch() -> None:
    """Clean up after launches that were killed: end their processes and delete their folders."""
    end_orphans()
    collect(_place())


def end_orphans() -> None:
    """Kill the processes that launches left running when their driver died.

    One of them is Ray's agent process, which runs for a minute or longer after the main process of
    its node (raylet) was killed.
    """
    for folder in left_folders(_place()):
        end_members(folder)


def end_members(folder: Path) -> None:
    for _ in range(_PASSES):
        killed = []
        for process in members(folder):
            with suppress(psutil.Error):
                process.kill()
                killed.append(process)
        if not killed:
            return
        wait_for_end(killed, _PATIENCE)


def _leave(folder: Path) -> None:
    end_members(folder)
    with suppress(OSError):
        clear(folder)


def _place() -> Path:
    """Return the system's folder for temporary files; /tmp if its path is too long for sockets."""
    own = Path(tempfile.gettempdir()).absolute()
    has_room = len(os.fsencode(own)) + _OWN + _RAY <= _SOCKET_PATH
    return own if has_room else Path("/tmp")  # noqa: S108


_PROC = Path("/proc/self")
_FILE = "processes"
_FIRST, _SLOWER, _LONGEST = 0.25, 1.3, 5.0
"""Seconds until the first check, growth factor of the interval between checks, and its limit. The
first checks are frequent, because Ray's processes start first. Later ones are rare, because each
lists all processes of the machine, which takes milliseconds."""


@contextmanager
def recorded_members(folder: Path) -> Iterator[None]:
    """Record every process that this process starts inside the `with` block.

    A background thread writes them to the file `processes`.
    """
    before = children()
    known: set[psutil.Process] = set()
    over = threading.Event()

    def record() -> None:
        joined = children(recursive=True).difference(known, before, *map(below, before))
        known.update(joined)
        lines = filter(None, map(identity, joined))
        if text := "".join(f"{line}\n" for line in lines):
            with (folder / _FILE).open("a") as file:
                file.write(text)

    def watch() -> None:
        wait = _FIRST
        while not over.wait(wait):
            with suppress(psutil.Error, OSError):
                record()
            wait = min(wait * _SLOWER, _LONGEST)

    threading.Thread(target=watch, name="members", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        with suppress(psutil.Error, OSError):
            record()


def members(folder: Path) -> Iterator[psutil.Process]:
    """Yield the processes of a launch that are still running, and their descendants.

    These are the processes that the file `processes` lists, and those of Ray that were started so
    shortly before the launch was killed that the file does not list them.
    """
    try:
        lines = frozenset((folder / _FILE).read_text().splitlines())
    except (OSError, UnicodeDecodeError):
        lines = frozenset()
    seen = set(_started_in(folder))
    for line in lines:
        with suppress(psutil.Error, ValueError):
            process = psutil.Process(int(line.partition(" ")[0]))
            if identity(process) == line:
                seen |= {process, *below(process)}
    yield from filter(lives, seen)


def _started_in(folder: Path) -> Iterator[psutil.Process]:
    """Yield the processes that have a folder as working directory and name it in their arguments.

    A launch starts Ray in its private folder, and Ray starts its workers with the path of the
    folder as argument. A worker that starts after the folder was removed creates it again.
    """
    try:
        there, running = folder.stat(), list(psutil.process_iter())
    except (psutil.Error, OSError, IndexError):  # gone, or a system without `/proc`
        return
    for process in running:
        with suppress(psutil.Error, OSError):
            folder_of = Path(f"/proc/{process.pid}/cwd" if _PROC.exists() else process.cwd())
            is_in = os.path.samestat(folder_of.stat(), there)
            if is_in and any(str(folder) in argument for argument in process.cmdline()):
                yield process


def identity(process: psutil.Process) -> str | None:
    """Return a text that identifies a process, even if its pid is reused; None if it has ended."""
    if not _PROC.exists():
        try:
            return f"{process.pid} {process.create_time()}" if lives(process) else None
        except (psutil.Error, OSError):
            return None
    try:
        started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{process.pid} {started} {boot} {Path('/proc/self/ns/pid').readlink()}"
    except (OSError, IndexError):
        return None
