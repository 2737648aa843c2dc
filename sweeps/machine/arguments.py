"""Arguments: read the command line of this process as UTF-8, and hide the secrets in it."""

import codecs
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from mixup_core.addresses import Address, store_address
from sweeps.machine.databases import database_address

Shown = Callable[[str], Address]
STORE = ("--store", "MIXSWEEP_STORE")
TRACKING = ("--tracking-uri", "MLFLOW_TRACKING_URI")
OPTUNA = ("--optuna", "MIXSWEEP_OPTUNA")
ADDRESSES: Mapping[tuple[str, str], Shown] = {
    STORE: store_address, TRACKING: database_address, OPTUNA: database_address,
}  # fmt: skip
"""Functions that return an address without its secrets, by the pair (option, environment variable)
that can give the address."""
_MOVED = "_MIXSWEEP_MOVED"
"""Environment variable that names, after the restart, the variables that options were moved to."""
_moved: set[str] = set()


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


def hide_addresses(options: Mapping[tuple[str, str], Shown] = ADDRESSES) -> None:
    """Move addresses with a secret from this process's arguments to its environment, by a restart.

    Other users can read the command line, but not the environment. If no address has a secret, this
    does nothing.

    Args:
        options: Maps the pair (option, environment variable that can replace it) to a function
            that takes the full address and returns an `Address` without secrets. The full address
            has a secret if the `is_whole` of that `Address` is False.
    """
    _moved.update(os.environ.pop(_MOVED, "").split())  # not for child processes
    arguments, moved = moved_to_environment(sys.orig_argv, options)
    if moved:
        environment = {**os.environ, **moved, _MOVED: " ".join(moved)}
        os.execve(sys.executable, arguments, environment)  # noqa: S606  no shell


def was_option(variable: str) -> bool:
    """Return True if `hide_addresses` moved an option's address to an environment variable."""
    return variable in _moved


def moved_to_environment(
    arguments: Sequence[str], options: Mapping[tuple[str, str], Shown]
) -> tuple[list[str], dict[str, str]]:
    """Move addresses that have secrets from command-line arguments to environment variables.

    An option that is given several times stays in the arguments, where its secrets can be read,
    because a variable has one value.

    Args:
        arguments: The command line.
        options: Maps the pair (option, environment variable that can replace it) to a function
            that takes the full address and returns an `Address` without secrets. The full address
            has a secret if the `is_whole` of that `Address` is False.

    Returns:
        The remaining arguments, and the addresses with secrets by name of their variable.
    """
    kept, moved = list(arguments), {}
    for (option, variable), shown in options.items():
        places = [
            place for place, argument in enumerate(kept) if argument.partition("=")[0] == option
        ]
        if len(places) != 1:
            continue
        (place,) = places
        has_own = "=" in kept[place]
        end = place + (1 if has_own else 2)
        value = kept[place].partition("=")[2] if has_own else "".join(kept[place + 1 : end])
        if not shown(value).is_whole:
            moved[variable] = value
            del kept[place:end]
    return kept, moved
