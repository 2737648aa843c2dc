"""Moved: commands of earlier versions, and the commands that do their work now."""

from functools import partial
from typing import NoReturn

import click

from mixsweep.request import RefusedError, program

MOVED = {
    "why": "status STUDY ARM SEED",
    "logs": "status STUDY ARM SEED",
    "list": "status",
    "compare": "report STUDY OTHER, or report STUDY --arms A B",
    "export": "report STUDY --epochs FILE, or --predictions FILE",
    "cite": "report STUDY --cite",
    "doctor": "plan STUDY",
    "bench": "plan STUDY, which says how long a study takes here",
}
"""The command line that replaces a command, by the name of the command. For one release."""


class Commands(click.Group):
    """Group of commands that answers a moved command with one line and exit code 2."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with a name; one that has moved only says where it is now."""
        if cmd_name not in MOVED:
            return super().get_command(ctx, "new" if cmd_name == "init" else cmd_name)
        settings = {"ignore_unknown_options": True, "help_option_names": []}
        words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED, expose_value=False)
        return click.Command(
            cmd_name,
            context_settings=settings,
            params=[words],
            callback=partial(_refuse, MOVED[cmd_name]),
        )


def _refuse(now: str) -> NoReturn:
    raise RefusedError(f"now: {program()} {now}")
