"""Streams: make standard input, output and error safe, so that they cannot end a command.

The reader of the output may close it, a disk may be full, a terminal may not support all
characters, and a program may be started without these streams.
"""

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

_NUMBERS = (0, 1, 2)
_lost: dict[int, OSError] = {}


class _Steady(io.FileIO):
    """Writes to a stream until an error occurs, and then discards all output."""

    def write(self, data: "io.ReadableBuffer") -> int:  # type: ignore[name-defined]
        """Return the number of bytes that were written or discarded."""
        try:
            return super().write(data) or 0
        except OSError as error:
            _lost.setdefault(self.fileno(), error)
            discard(self.fileno())
            return memoryview(data).nbytes


def steady_streams() -> None:
    """Prevent errors of stdin, stdout and stderr from ending this process or its children."""
    for number in _NUMBERS:
        try:
            os.fstat(number)
        except OSError:  # closed: the next opened file would get this number
            discard(number)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  a number
    if sys.stdout is sys.__stdout__:  # otherwise it was replaced on purpose
        sys.stdout = _steady(sys.stdout, 1)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _steady(sys.stderr, 2)


def lost_output() -> OSError | None:
    """Return the error that made standard output incomplete; None if there was none.

    A reader that closed the output is not an error.
    """
    with suppress(ValueError):
        sys.stdout.flush()
    error = _lost.get(1)
    return None if error is None or error.errno == errno.EPIPE else error


def discard(number: int) -> None:
    """Discard everything written to a stream from now on."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def _steady(stream: TextIO | Any, number: int) -> io.TextIOWrapper:
    is_terminal = os.isatty(number)
    if stream is not None:
        with suppress(OSError, ValueError):
            stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Steady(number, "w", closefd=False)),
        encoding="utf-8" if stream is None else stream.encoding,
        errors="backslashreplace",
        line_buffering=is_terminal or number == 2,
    )
