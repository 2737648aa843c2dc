"""Open writes: an interrupted driver ends its workers when no state is half written.

writing       file in the folder of a launch; every worker locks it while it writes a state
writing.over  exists once the driver is ending, so that no further write begins
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mixup_core.store.errors import naming

WRITING = "writing"
_PATIENCE = 3.0
"""Seconds that the driver waits for states that are being written."""
_LOOK_EVERY = 0.02
_NAP = 3600.0


@contextmanager
def open_write(file: str | None) -> Iterator[None]:
    """Let the driver wait for the end of the block; if it is ending, do not begin the block.

    Args:
        file: Path of `writing`; None if the driver does not end this process.
    """
    if file is None:
        yield
        return
    lock = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        with naming(Path(file)):
            fcntl.flock(lock, fcntl.LOCK_SH)
        if not _over(file).exists():
            yield
            return
    finally:
        os.close(lock)
    while True:  # the driver ends this process in a moment
        time.sleep(_NAP)


def wait_for_writes(file: Path) -> None:
    """Wait until no worker writes a state, at most a few seconds; further writes do not begin."""
    give_up_at = time.monotonic() + _PATIENCE
    with suppress(OSError), file.open("a") as lock:
        _over(str(file)).touch()
        while time.monotonic() < give_up_at:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_LOOK_EVERY)


def _over(file: str) -> Path:
    return Path(f"{file}.over")
