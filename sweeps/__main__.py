"""The process `mixsweep`, or `python -m sweeps`: it handles signals from its first moment on."""

from typing import NoReturn

from sweeps.machine.arguments import hide_addresses, read_names_as_utf8
from sweeps.machine.signals import hear, leave_saying_so
from sweeps.machine.streams import steady_streams


def main() -> NoReturn:
    """Run the command line, after preparing signals, streams and secrets.

    The imports of the command line take a quarter of a second. Before them, addresses with a secret
    are removed from the command line, which every user of the machine can read.
    """
    steady_streams()
    hear(leave_saying_so)
    read_names_as_utf8()
    hide_addresses()
    from sweeps import cli

    cli.main()


if __name__ == "__main__":
    main()
