"""plan: show what `mixsweep run` would train, what it costs, and what this machine lacks."""

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from mixsweep.cli.data import spell_place
from mixsweep.cli.hardware import Hardware
from mixsweep.cli.options import AtLeastZero, StudyCommand, json_option, on_study
from mixsweep.cli.plan_summary import plan_summary, spell_json
from mixsweep.cli.plan_text import spell_plan
from mixsweep.launching.costs import bytes_free_for_runs
from mixsweep.launching.preconditions import missing_data
from mixsweep.request import DONE, Request
from mixup_core.numeric_settings import installed_version
from mixup_core.problem import all_data_needs
from sweeps.machine.home import Home
from sweeps.machine.resources import memory_of_machine, sign_of_gpus, spell_lack_of_mps, usable_cpus
from sweeps.machine.terminal_text import fitted_text, screen


@click.command(cls=StudyCommand)
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    default=usable_cpus,
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
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help="In errors, list all accepted values of a key, not only some.",
)
@json_option
@on_study("one or none")
def plan(request: Request | None, home: Home, as_json: bool, **hardware: Any) -> int:
    """Show which runs `mixsweep run` would train and what they would cost; change nothing.

    Without a STUDY, show what this machine has for training, and what it lacks.
    """
    if request is not None:
        _plan(request, Hardware(**hardware), as_json=as_json)
        return DONE
    for line in findings(home):
        click.echo(fitted_text(line))
    return DONE


def _plan(request: Request, hardware: Hardware, *, as_json: bool) -> None:
    notes: dict[str, None] = {}
    if request.study.problem.data is not None:
        needs = request.study.problem.data()
        for config in request.study.arms.values():
            needs.check(config)
            notes |= dict.fromkeys(needs.notes(config))
    if lack := spell_lack_of_mps(hardware.gpus_per_run or 0.0):
        notes[lack] = None
    summary = plan_summary(request.grown, request.history, request.store, hardware)
    on_gpu = hardware.gpus_per_run != 0 and sign_of_gpus()
    summary = replace(
        summary,
        remarks=(*summary.remarks, *notes),
        free_bytes=None if on_gpu else bytes_free_for_runs(request.grown),
    )
    click.echo(spell_json(summary) if as_json else fitted_text(spell_plan(summary, screen())))
    if summary.to_run:
        for sentence in missing_data(request.study):
            click.echo(sentence, err=True)
    request.say_elsewhere(edits_alone=bool(summary.stored))


_PACKAGES = ("torch", "torchvision", "ray", "optuna", "mlflow", "numpy", "pandas")
_LOW_DISK_GB = 2.0


def findings(home: Home) -> Iterator[str]:
    """Yield one line of text per check of this machine: its subject, such as GPUs, and the result.

    Args:
        home: The home, on whose disk free space is checked.
    """
    yield f"python       {platform.python_version()} on {platform.platform()}"
    yield "packages     " + ", ".join(
        f"{name} {installed_version(name) or 'missing'}" for name in _PACKAGES
    )
    total, used = memory_of_machine()
    yield (
        f"machine      {usable_cpus()} of {os.cpu_count()} CPUs, "
        f"{total / 1e9:.0f} GB memory ({(total - used) / 1e9:.0f} GB free)"
    )
    yield f"GPUs         {_gpus()}"
    yield f"bfloat16     {_bfloat16()}"
    existing = next(
        folder
        for folder in (home.folder.resolve(), *home.folder.resolve().parents)
        if folder.exists()
    )
    free = shutil.disk_usage(existing).free / 1e9
    yield f"home         {home.folder}, {free:.1f} GB free" + (
        "" if free > _LOW_DISK_GB else ": low"
    )
    for needs in all_data_needs().values():
        for dataset in needs.sets():
            size = dataset.num_bytes
            memory = "" if size is None else f"; {size / 1e6:,.1f} MB in memory"
            yield f"data         {dataset.name}: {spell_place(dataset)}{memory}"


def _gpus() -> str:
    import torch

    if not torch.cuda.is_available():
        return "none; runs train on CPUs, one thread each"
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    lack = spell_lack_of_mps(0.5)
    return "; ".join([", ".join(names), *([lack] if lack else [])])


def _bfloat16() -> str:
    import torch

    if torch.cuda.is_available():
        return "fast on this GPU" if torch.cuda.is_bf16_supported() else "not on this GPU"
    fast = torch.cpu.get_capabilities().get("amx_bf16", False)
    return "fast on this CPU (AMX)" if fast else "no gain on this CPU (no AMX)"
