"""Arguments: names of options with addresses; reads the command line of this process as UTF-8."""

import codecs
import os
import sys

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
