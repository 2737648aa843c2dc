"""Command line: the arguments and the standard streams of this process.

A command goes on if reading stdin or writing to stdout or stderr fails: the program that reads the
output may have ended, the disk may be full, the terminal may not support a character, or the
command may have been started without these streams.
"""

import codecs
import errno
import io
import os
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

# Frozen: names that scripts and job files set; tests/mixsweep/cli/test_options.py fails.
STORE = ("--store", "MIXSWEEP_STORE")
TRACKING = ("--tracking-uri", "MLFLOW_TRACKING_URI")
OPTUNA = ("--optuna", "MIXSWEEP_OPTUNA")
"""The pair (option, environment variable) that can give each address."""


def read_names_as_utf8() -> None:
    """Restart this process in Python's UTF-8 mode if the locale has another encoding.

    Databases and URLs read every path as UTF-8. Output keeps the encoding of the terminal.
    """
    if codecs.lookup(sys.getfilesystemencoding()).name == "utf-8":
        return
    printed = {} if sys.stdout is None else {"PYTHONIOENCODING": sys.stdout.encoding}
    arguments = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
    os.execve(sys.executable, arguments, printed | os.environ | {"PYTHONUTF8": "1"})  # noqa: S606


def program() -> str:
    """Return the word that starts this program in a shell.

    It is `mixsweep`, or the path of the program if the shell does not find `mixsweep`.
    """
    started = Path(sys.argv[0])
    if started.name != "mixsweep" or shutil.which("mixsweep") is not None:
        return "mixsweep"
    folder = Path.cwd()
    return str(started.relative_to(folder) if started.is_relative_to(folder) else started)


def this_command() -> str | None:
    """Return the command line of this process for a shell; None if Python code started it."""
    started = Path(sys.argv[0]).name
    if started == "-c":
        return None
    words = ["python", "-m", "mixsweep"] if started == "__main__.py" else [program()]
    return shlex.join([*words, *sys.argv[1:]])


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
    """Replace the standard streams so that no error in them ends the process; see `lost_output`."""
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

    A pipe whose reader has closed it (such as `| head`) is no error.
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
