"""Entry point of `mixsweep` and `python -m mixsweep`; sets signal handlers before slow imports."""

from typing import NoReturn

from sweeps.machine.command_line import read_names_as_utf8, steady_streams
from sweeps.machine.signals import hear, leave_saying_so


def main() -> NoReturn:
    """Prepare signal handlers, output streams and names, then run the command line.

    The preparation comes before the import of the command line's modules, which takes a quarter of
    a second.
    """
    steady_streams()
    hear(leave_saying_so)
    read_names_as_utf8()
    from mixsweep.cli import main as cli

    cli.main()


if __name__ == "__main__":
    main()
