"""run and stop: train the missing runs of a study and report them, or ask its driver to stop."""

import re
import shlex
from pathlib import Path
from typing import Any

import click

from mixsweep.cli.ending import Ending
from mixsweep.cli.options import (
    AtLeastZero,
    StudyCommand,
    home_option,
    on_study,
    placement_options,
    store_option,
    without_secret,
)
from mixsweep.launching.conclusion import conclude
from mixsweep.launching.launch import LaunchOptions, launch
from mixsweep.request import DONE, SOME_FAILED, Request
from mixup_core.addresses import web_address
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import STUDY_NAME
from reports.numbers.code_origin import spell_other_sender
from sweeps.leasing.lease import Lease, ask_to_stop, read_progress
from sweeps.machine.command_line import program
from sweeps.machine.home import Home
from sweeps.machine.terminal_text import fitted_text
from sweeps.reading.study_file import load_study


@click.command(cls=StudyCommand)
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
@on_study("many", databases=True)
def run(request: Request, **options: Any) -> int:
    """Train the missing runs of studies, one study after another, and write their reports."""
    if warning := spell_other_sender():
        click.echo(warning, err=True)
    ending = click.get_current_context().ensure_object(Ending)
    ending.study = request.study.name
    ending.leaves_files = True

    def begin() -> None:
        ending.has_trained = True

    launched = launch(request, LaunchOptions(**options), begin=begin)
    ending.report = launched.report.folder
    click.echo(fitted_text(launched.report.screen))
    code = conclude(
        launched.request,
        launched.results,
        launched.report,
        is_inline=options["engine"] == "inline",
    )
    return SOME_FAILED if launched.is_refused else code


@click.command(cls=StudyCommand)
@click.argument("study")
@home_option
@store_option
@click.option(
    "--now",
    is_flag=True,
    help="Do not finish the running runs; they continue later after their last stored epoch.",
)
def stop(study: str, home: Path, store_url: str | None, now: bool) -> int:
    """Stop a study: no new run starts, the running ones finish, and the report is written.

    The study may be running on any machine that uses the store. To resume it, repeat the command
    `mixsweep run`.
    """
    place = Home(folder=home, store_url=store_url)
    store = Store(place.store)
    # A study file need not be readable here: its name alone is known to the driver.
    is_name = re.fullmatch(STUDY_NAME, study) is not None
    name = study if is_name else load_study(study, (), place.store, reads_only=True).name
    holder = Lease.current(store, name)
    if holder is None:
        click.echo(f"{name}: not running, nothing to stop", err=True)
        return DONE
    ask_to_stop(store, name, holder, "now" if now else "finish")
    progress = read_progress(store, name)
    running = 0 if progress is None else len(progress.running)
    text = f"stops {'and interrupts' if now else 'after'} the runs in training ({running})"
    click.echo(
        f"{name}: {holder} {text}; next  {program()} status {shlex.quote(study)} {place.options}",
        err=True,
    )
    return DONE
