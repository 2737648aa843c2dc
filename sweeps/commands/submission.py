"""Submission: a study as a job of a Ray cluster. The job is `mixsweep run`, and nothing else."""

import os
import secrets
import shlex
import sys
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import click
import yaml

from mixup_core.problem import all_data_needs
from sweeps.commands.request import (
    BAD_INPUT,
    BUSY,
    DONE,
    OPTUNA,
    STORE,
    TRACKING,
    RefusedError,
    Request,
    on_study,
    placement_options,
)
from sweeps.machine.databases import database_file, sqlite_url
from sweeps.machine.home import Home
from sweeps.machine.signals import INTERRUPTED
from sweeps.reading.study_file import bundled_studies
from sweeps.running.jobs import Cluster, ClusterError


@click.command()
@on_study
@placement_options
@click.option(
    "--address",
    required=True,
    envvar="RAY_API_SERVER_ADDRESS",
    help="The cluster's dashboard, http://HOST:8265.",
)
@click.option(
    "--python",
    envvar="MIXSWEEP_PYTHON",
    help="Interpreter on the head; default: the path of this one if it is there, else python.",
)
@click.option(
    "--data", envvar="MIXSWEEP_DATA", help="Folder of data sets on the cluster; default: its own."
)
@click.option("--follow/--no-follow", default=True, help="Print what the job prints, to its end.")
def submit(  # noqa: PLR0913  each is an option
    request: Request,
    slots: int | None,
    gpus_per_run: float | Literal["auto"] | None,
    cpus_per_run: int,
    device: str | None,
    keep_final_states: bool,
    address: str,
    python: str | None,
    data: str | None,
    follow: bool,
) -> int:
    """Run a study as a job of a Ray cluster, and exit with the job's own code.

    The working directory is uploaded. Places are the cluster's: a relative path is made absolute
    here, and means the same folder there.
    """  # noqa: DOC501
    places = _places(request)
    options = {
        **places,
        "--slots": slots,
        "--gpus-per-run": gpus_per_run,
        "--cpus-per-run": cpus_per_run,
        "--device": device,
    }
    bundled = request.reference in bundled_studies()
    reference = request.reference if bundled else _uploaded(request.reference)
    plugins = [_uploaded(file) for file in request.plugins]
    arguments = [
        "run",
        reference,
        *(part for override in request.overrides for part in ("--set", override)),
        *(part for file in plugins for part in ("--plugin", file)),
        *(
            str(part)
            for name, value in options.items()
            if value is not None
            for part in (name, value)
        ),
        *(["--keep-final-states"] if keep_final_states else []),
    ]
    try:
        cluster = Cluster.connect(address.rstrip("/"))
        study = {"study": request.study.name, "store": places.get("--store", request.home.store)}
        running = cluster.job_of(study)
        if running is not None:
            click.echo(f"study {request.study.name!r} is driven by job {running}", err=True)
            click.echo(_advice(cluster, running), err=True)
            return BUSY
        job = f"{request.study.name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        cluster.start(
            job,
            _entrypoint(python, arguments, [*([] if bundled else [reference]), *plugins]),
            _runtime_environment(request.home, job, data),
            study,
        )
        click.echo(f"job       {job}\nstore     {study['store']} on the cluster", err=True)
        if not follow:
            click.echo(_advice(cluster, job), err=True)
            return DONE
        try:
            return cluster.follow(job)
        except KeyboardInterrupt:
            click.echo(f"\nthe job goes on\n{_advice(cluster, job)}", err=True)
            return INTERRUPTED
    except ClusterError as error:
        raise RefusedError(str(error)) from error


def _places(request: Request) -> dict[str, str]:
    """Return the options that say where the job keeps things, none of them relative or secret.

    Raises:
        RefusedError: If one holds a password: whoever may list jobs sees their commands.
    """
    home = request.home
    places = {"--home": str(home.folder.resolve())}
    for (option, variable), place, shown in (
        (STORE, home.store_url, home.shown_store),
        (TRACKING, home.tracking, home.shown_tracking),
        (OPTUNA, home.optuna, home.shown_optuna),
    ):
        if place and not shown.is_whole:
            raise RefusedError(
                f"{option} {shown}: the address of a job must have no login and no query, because "
                "everyone who may list jobs sees their commands; leave the option out and set "
                f"{variable} where the head of the cluster is started"
            )
        if place:
            places[option] = _absolute(place)
    return places


def _absolute(place: str) -> str:
    """Return a path, or the address of a SQLite file, free of the folder it is read in.

    A job's own folder is Ray's copy of the upload, which goes when the job does.
    """
    if (file := database_file(place)) is not None:
        return sqlite_url(Path(os.path.realpath(file)))
    return place if "://" in place else os.path.realpath(place)


def _uploaded(name: str) -> str:
    """Return a file of the working directory as the job names it.

    Raises:
        RefusedError: If the file lies elsewhere.
    """
    file, here = Path(name).resolve(), Path.cwd()
    if not file.is_relative_to(here):
        raise RefusedError(
            f"{name}: lies outside of the working directory, which is all that a job gets; "
            "move it there, or submit from the folder that holds it"
        )
    return str(file.relative_to(here))


def _entrypoint(python: str | None, arguments: Sequence[str], files: Sequence[str]) -> str:
    """Return the shell command of a job.

    `python` alone would be the first one on the PATH of whoever started the head.

    Args:
        python: The interpreter; None: the one of this process if it is there.
        arguments: Of `mixsweep`.
        files: Those that must have been uploaded.
    """
    run = shlex.join(["-m", "sweeps.cli", *arguments])
    if python is None:
        interpreter = f'"$(command -v {shlex.quote(sys.executable)} || command -v python)"'
    else:
        interpreter = shlex.quote(python)
    guards = []
    for file in files:
        missing = f"{file}: not uploaded; .gitignore, .rayignore or the excludes leave it out"
        refuse = f"{{ echo {shlex.quote(missing)}; exit {BAD_INPUT}; }}"
        guards.append(f"test -f {shlex.quote(file)} || {refuse}; ")
    return f"{''.join(guards)}exec {interpreter} {run}"


def _runtime_environment(home: Home, job: str, data: str | None) -> dict[str, Any]:
    """Return Ray's runtime environment: the shipped file, this directory, and what it comes from.

    The job passes it on to its workers. Results and data in this directory stay here,
    whatever their folders are called.
    """
    from reports.numbers.provenance import JOB_VARIABLE, code_variables, describe_repository

    shipped = (resources.files("cluster") / "runtime-env.yaml").read_text()
    environment: dict[str, Any] = yaml.safe_load(shipped)
    code = describe_repository(Path.cwd())
    environment["env_vars"] |= {
        JOB_VARIABLE: job,
        **({} if code is None else code_variables(code)),
        **({} if data is None else {"MIXSWEEP_DATA": str(Path(data).absolute())}),
    }
    here = Path.cwd()
    roots = [data] if data is not None else [needs.root() for needs in all_data_needs().values()]
    kept = [Path(os.path.realpath(place)) for place in (home.folder, home.store, *roots)]
    environment["excludes"] += [
        f"/{folder.relative_to(here)}"
        for folder in kept
        if folder != here and folder.is_relative_to(here)
    ]
    return {**environment, "working_dir": "."}


def _advice(cluster: Cluster, job: str) -> str:
    """Return what to type to follow or stop a job."""
    ray = f"RAY_AUTH_MODE=token ray job {{}} {job} --address {cluster.address}"
    return f"follow    {ray.format('logs --follow')}\nstop      {ray.format('stop')}"
