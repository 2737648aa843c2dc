"""Streams: a command goes on if reading stdin or writing to stdout or stderr fails.

Writing fails if the program that reads the output has ended, the disk is full, or the terminal does
not support a character. A command can also be started without these three streams.
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
    """Raw output stream that discards all output after its first error."""

    def write(self, data: "io.ReadableBuffer") -> int:  # type: ignore[name-defined]
        try:
            return super().write(data) or 0
        except OSError as error:
            _lost.setdefault(self.fileno(), error)
            discard(self.fileno())
            return memoryview(data).nbytes


def steady_streams() -> None:
    """Replace `sys.stdin`, `sys.stdout` and `sys.stderr` so that no error in them ends the process.

    After an error, further output is discarded; `lost_output` returns the error of `sys.stdout`.
    """
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
    """Return the error after which standard output was discarded; None if all output was written.

    A pipe whose reader has closed it (such as `| head`) is not counted as an error.
    """
    with suppress(ValueError):
        sys.stdout.flush()
    error = _lost.get(1)
    return None if error is None or error.errno == errno.EPIPE else error


def discard(number: int) -> None:
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
