"""Commands that read and never write: plan, status, doctor, schema, studies."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from mixsweep.cli.options import AtLeastZero, home_option, json_option, loading_option
from mixsweep.cli.plan_summary import plan_summary, spell_plan
from mixsweep.cli.preconditions import missing_data
from mixsweep.cli.request import DONE, Request, on_study
from mixsweep.cli.status_summary import spell_status, status_summary
from sweeps.machine.home import Home
from sweeps.machine.processor import sign_of_gpus, usable_cpus
from sweeps.machine.terminal_text import fitted_text, screen
from sweeps.reading.schema import study_schema
from sweeps.reading.study_file import bundled_studies


@click.command()
@on_study
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    help="Runs trained in parallel; default: the number of CPUs that this process may use.",
)
@click.option(
    "--gpus-per-run",
    type=AtLeastZero(),
    help="GPUs per run; default: 1 if the stored runs were trained on GPUs.",
)
@click.option(
    "--price",
    type=AtLeastZero(),
    help="Price of a GPU-hour; if runs use no GPU, price of one hour of one slot.",
)
@json_option
def plan(
    request: Request,
    slots: int | None,
    gpus_per_run: float | None,
    price: float | None,
    as_json: bool,
) -> int:
    """Show which runs `mixsweep run` would train and what they would cost; change nothing."""
    notes: dict[str, None] = {}
    if request.study.problem.data is not None:
        needs = request.study.problem.data()
        for config in request.study.arms.values():
            needs.check(config)
            notes |= dict.fromkeys(needs.notes(config))
    from sweeps.running.run_memory import RunMemory

    study, cpus = request.grown, usable_cpus()
    device: Literal["cpu", "auto"] = "auto" if gpus_per_run != 0 and sign_of_gpus() else "cpu"
    memory = RunMemory.of(study, slots or cpus, device)
    fit = None if memory is None else memory.side_by_side(study)
    summary = plan_summary(
        study,
        request.history,
        request.store,
        slots=slots or min(cpus, fit or cpus),
        gpus_per_run=gpus_per_run,
        price=price,
    )
    summary["remarks"] += notes
    if memory is not None:
        summary["run_memory"] = asdict(memory) | {"says": memory.says(study)}
    click.echo(
        json.dumps(summary, indent=2) if as_json else fitted_text(spell_plan(summary, screen()))
    )
    if summary["to_run"]:
        for sentence in missing_data(request.study):
            click.echo(sentence, err=True)
    request.say_elsewhere(edits_alone=bool(summary["stored"]))
    return DONE


@click.command()
@on_study
@json_option
def status(request: Request, as_json: bool) -> int:
    """Show the progress of a study, whether it is running or not."""
    summary = status_summary(request.grown, request.store)
    click.echo(
        json.dumps(summary, indent=2) if as_json else fitted_text(spell_status(summary, screen()))
    )
    if request.store.is_absent and not as_json:
        click.echo(f"{request.home.shown_store}: this store does not exist", err=True)
    elif not any(arm["finished"] for arm in summary["arms"].values()):
        request.say_elsewhere()
    return DONE


@click.command()
@home_option
@loading_option
def doctor(home: Path) -> int:
    """Report which requirements for training this machine meets, and what is missing."""
    from mixsweep.cli.doctor import findings

    for line in findings(Home(folder=home)):
        click.echo(fitted_text(line))
    return DONE


@click.command()
@loading_option
def schema() -> int:
    """Print the JSON Schema of study files, with which editors complete and check them."""
    click.echo(json.dumps(study_schema(), indent=2))
    return DONE


@click.command("studies")
def list_studies() -> int:
    """List the studies that come with mixsweep, with their descriptions."""
    studies = bundled_studies()
    width = max(map(len, studies)) + 1
    for name, description in studies.items():
        summary = re.split(r"(?<!et al)\. ", description, maxsplit=1)[0]
        click.echo(fitted_text(f"{name:<{width}} {summary}"))
    return DONE
