"""status: show launched studies, the progress of one, or where results of its runs come from."""

import json

import click

from mixsweep.cli.launched_studies import tell_studies
from mixsweep.cli.options import StudyCommand, json_option, on_study
from mixsweep.cli.run_story import tell_runs
from mixsweep.cli.status_summary import spell_status, status_summary
from mixsweep.request import DONE, RefusedError, Request
from sweeps.machine.home import Home
from sweeps.machine.terminal_text import fitted_text, screen


@click.command(cls=StudyCommand)
@on_study("one or none", reads_only=True)
@click.argument("arm", required=False)
@click.argument("seed", type=int, required=False)
@json_option
def status(
    request: Request | None, home: Home, arm: str | None, seed: int | None, as_json: bool
) -> int:
    """Show the progress of a study, whether it is running or not.

    Without STUDY: the studies that were launched in the home or store, with their reports. With
    ARM, or ARM and SEED: for each run its key, its stored epochs with the run that trained them,
    the epochs that the next launch would train, and its error; with SEED also every stored epoch.
    """
    if request is None:
        tell_studies(home, as_json=as_json)
        return DONE
    if arm is not None:
        if as_json:
            raise RefusedError("--json shows whole studies; remove it, or remove ARM")
        tell_runs(request, arm, seed)
        return DONE
    summary = status_summary(request.grown, request.store)
    click.echo(
        json.dumps(summary, indent=2) if as_json else fitted_text(spell_status(summary, screen()))
    )
    if request.store.is_absent and not as_json:
        click.echo(f"{request.home.shown_store}: this store does not exist", err=True)
    elif not any(each["finished"] for each in summary["arms"].values()):
        request.say_elsewhere()
    return DONE
