"""The process `mixsweep`, or `python -m sweeps`: it is heard from its first moment on."""

from typing import NoReturn

from sweeps.machine.arguments import hide_addresses, read_names_as_utf8
from sweeps.machine.signals import hear, leave_saying_so
from sweeps.machine.streams import steady_streams


def main() -> NoReturn:
    """Run the command line, whose imports alone take a quarter of a second.

    An address with a secret is taken from what every user of the machine can read before that.
    """
    steady_streams()
    hear(leave_saying_so)
    read_names_as_utf8()
    hide_addresses()
    from sweeps import cli

    cli.main()


if __name__ == "__main__":
    main()
