"""Freed memory: what the C library of a process that trains does with it."""

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""
_NEVER = 2**31 - 1
_LARGEST = 32 * 2**20
"""Bytes; where glibc's own adaption ends."""


def keep_freed_memory() -> None:
    """Let this process keep memory that it frees, of blocks up to 32 MB, for what it needs next.

    Every step frees what the next one asks for again. Left alone, glibc gives much of it back to
    the system, which clears each page before it comes again: 4 to 5 % of the CPU time of a run of
    the quickstart, and half of that of a batch's assembly. No bit moves, and the process is as
    large as its largest step made it. Where the C library is another, nothing happens.
    """
    with suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, _NEVER)
        library.mallopt(_MMAP_THRESHOLD, _LARGEST)
