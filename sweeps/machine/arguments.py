"""Arguments: the command line of this process, which every user of the machine can read."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from mixup_core.addresses import Address

Shown = Callable[[str], Address]


def hide_addresses(options: Mapping[tuple[str, str], Shown]) -> None:
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
