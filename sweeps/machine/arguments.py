"""Arguments: the command line of this process: how it is read, and what of it others can read."""

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
"""Option and variable of each address to what may be shown of it."""


def read_names_as_utf8() -> None:
    """Start this process anew in Python's UTF-8 mode if the locale means another encoding.

    Databases and URLs take every path as UTF-8; in another encoding one path would be two folders.
    What is printed keeps the encoding of the terminal.
    """
    if codecs.lookup(sys.getfilesystemencoding()).name == "utf-8":
        return
    printed = {} if sys.stdout is None else {"PYTHONIOENCODING": sys.stdout.encoding}
    arguments = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
    os.execve(sys.executable, arguments, printed | os.environ | {"PYTHONUTF8": "1"})  # noqa: S606


def hide_addresses(options: Mapping[tuple[str, str], Shown] = ADDRESSES) -> None:
    """Start this process anew, with addresses that may hold a secret moved to its environment.

    Only this user can read the environment. Without such an address nothing is done.

    Args:
        options: Option and environment variable to what may be shown of the option's value.
    """
    arguments, moved = moved_to_environment(sys.orig_argv, options)
    if moved:
        os.execve(sys.executable, arguments, {**os.environ, **moved})  # noqa: S606  no shell


def moved_to_environment(
    arguments: Sequence[str], options: Mapping[tuple[str, str], Shown]
) -> tuple[list[str], dict[str, str]]:
    """Return the arguments without addresses that may hold a secret, and variables for these.

    An option that is repeated stays: a variable holds one value.
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
