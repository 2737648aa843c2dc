"""Arguments: the command line of this process, and the options for addresses."""

import codecs
import os
import shlex
import shutil
import sys
from pathlib import Path

STORE = ("--store", "MIXSWEEP_STORE")
TRACKING = ("--tracking-uri", "MLFLOW_TRACKING_URI")
OPTUNA = ("--optuna", "MIXSWEEP_OPTUNA")
"""The pair (option, environment variable) that can give each address."""


def read_names_as_utf8() -> None:
    """Restart this process in Python's UTF-8 mode if the locale has another encoding.

    Databases and URLs read every path as UTF-8. If this process used another encoding, one path
    could mean two folders. Output keeps the encoding of the terminal.
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
    here = Path.cwd()
    return str(started.relative_to(here) if started.is_relative_to(here) else started)


def this_command() -> str | None:
    """Return the command line of this process for a shell; None if Python code started it."""
    started = Path(sys.argv[0]).name
    if started == "-c":
        return None
    words = ["python", "-m", "mixsweep"] if started == "__main__.py" else [program()]
    return shlex.join([*words, *sys.argv[1:]])
