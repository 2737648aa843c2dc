"""Streams: keep errors of standard input, output and error from ending a command.

Such errors happen if the reader of the output closes it, a disk is full, a terminal does not
support a character, or a program is started without these streams.
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
    """A raw stream that writes until an error occurs, and then discards all further output."""

    def write(self, data: "io.ReadableBuffer") -> int:  # type: ignore[name-defined]
        """Write data; return the number of bytes that were written or discarded."""
        try:
            return super().write(data) or 0
        except OSError as error:
            _lost.setdefault(self.fileno(), error)
            discard(self.fileno())
            return memoryview(data).nbytes


def steady_streams() -> None:
    """Replace stdin, stdout and stderr, so that their errors cannot end this process."""
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

    A pipe that its reader has closed is not counted as an error.
    """
    with suppress(ValueError):
        sys.stdout.flush()
    error = _lost.get(1)
    return None if error is None or error.errno == errno.EPIPE else error


def discard(number: int) -> None:
    """Send everything written to a stream from now on to /dev/null.

    Args:
        number: File descriptor of the stream.
    """
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
