"""Members: a file with the processes of a launch, so that those left running can be killed later.

    processes       one line per process: pid, start in clock ticks, boot id, pid namespace; without
                    `/proc`, as on macOS, pid and start in Unix time

A launch is one call of `mixsweep run`. The file is in the launch's temporary folder. The pid alone
does not identify a process, because it may be reused later, or belong to another container.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from sweeps.machine.processes import below, children, lives

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
