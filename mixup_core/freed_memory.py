"""Freed memory: makes the C library keep the memory that a training process frees, for reuse."""

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""
_NEVER = 2**31 - 1
_LARGEST = 32 * 2**20
"""Largest freed block to keep, in bytes: the same limit as for glibc's dynamic threshold."""


def keep_freed_memory() -> None:
    """Let this process reuse the memory that it frees, in blocks up to 32 MB.

    Every step frees memory that the next step allocates again. By default, glibc returns much of it
    to the system, which must clear each page before it is used again: 4 to 5 % of the CPU time of a
    quickstart run, and half of the time of assembling a batch. Results do not change. The process
    stays as large as in its largest step. With another C library, this function has no effect.
    """
    with suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, _NEVER)
        library.mallopt(_MMAP_THRESHOLD, _LARGEST)
