"""run: train the missing runs of a study, then write its report."""

from typing import Any

import click

from mixsweep.cli.ending import Ending
from mixsweep.cli.options import (
    AtLeastZero,
    StudyCommand,
    on_study,
    placement_options,
    without_secret,
)
from mixsweep.launching.launch import LaunchOptions, launch
from mixsweep.launching.report_folder import conclude
from mixsweep.request import SOME_FAILED, Request
from mixup_core.addresses import web_address
from reports.numbers.code_origin import spell_other_sender


@click.command(cls=StudyCommand)
@on_study("many", databases=True)
@placement_options
@click.option(
    "--address",
    callback=without_secret(web_address, "RAY_ADDRESS"),
    help="Ray cluster to train on; default: this machine.",
)
@click.option(
    "--engine",
    type=click.Choice(["ray", "inline"]),
    default="ray",
    show_default=True,
    help="inline: train one run after another in this process, seed by seed, without Ray. Use it "
    "in a debugger, or if Ray is not installed.",
)
@click.option(
    "--until",
    type=AtLeastZero(),
    metavar="SECONDS",
    help="With --engine inline: start no run that would end more than this many seconds after the "
    "start of the command.",
)
@click.option(
    "--again",
    is_flag=True,
    help="Train diverged runs again, from their last stored epoch. This helps only after a change "
    "of machine or versions; otherwise they diverge again.",
)
@click.option(
    "--on-finish",
    metavar="COMMAND",
    is_eager=True,  # also runs after a study file was rejected
    expose_value=False,
    callback=lambda context, _, command: setattr(context.ensure_object(Ending), "command", command),
    help="Shell command to run when this command ends, also after an error, with MIXSWEEP_STUDY, "
    "MIXSWEEP_EXIT_CODE and MIXSWEEP_REPORT in its environment.",
)
def run(request: Request, **options: Any) -> int:
    """Train the missing runs of studies, one study after another, and write their reports."""
    if other := spell_other_sender():
        click.echo(other, err=True)
    ending = click.get_current_context().ensure_object(Ending)
    ending.study = request.study.name
    ending.leaves_files = True

    def begin() -> None:
        ending.has_trained = True

    launched = launch(request, LaunchOptions(**options), begin=begin)
    ending.report = launched.report.folder
    click.echo(launched.report.screen)
    code = conclude(
        launched.request,
        launched.results,
        launched.report,
        is_inline=options["engine"] == "inline",
    )
    return SOME_FAILED if launched.is_refused else code
