"""Moved: commands of earlier versions, and the commands that do their work now."""

import re
from functools import partial
from typing import NoReturn

import click

from mixsweep.request import RefusedError
from sweeps.machine.command_line import program

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


SECTIONS = {
    "Choose or write a study": ("studies", "new", "check", "data", "schema"),
    "Train and read": ("plan", "run", "status", "report", "ui", "stop"),
    "Share, clusters and clean-up": ("share", "add", "publish", "submit", "sync", "store"),
}
"""Commands by heading, in the order in which `mixsweep --help` lists them."""


class Commands(click.Group):
    """Group of commands that answers a moved command with one line and exit code 2."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its first sentence, below a heading."""
        del ctx
        for heading, names in SECTIONS.items():
            texts = {name: (self.commands[name].help or "").strip() for name in names}
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (name, " ".join(re.split(r"[.;]\s", text)[0].split()).rstrip("."))
                        for name, text in texts.items()
                    ]
                )

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
