"""submit: send a study as a job to a Ray cluster, where the job runs `mixsweep run`."""

import os
import secrets
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import click
import yaml

from mixsweep.cli.options import placement_options, without_secret
from mixsweep.cli.request import DONE, RefusedError, Request, on_study
from mixup_core.addresses import local_path, web_address
from mixup_core.problem import all_data_needs
from mixup_core.rules import printable
from mixup_core.temporary import temporary_folder
from sweeps.leasing.holders import BUSY
from sweeps.machine.arguments import OPTUNA, STORE, TRACKING
from sweeps.machine.databases import database_file, sqlite_url
from sweeps.machine.home import Home
from sweeps.machine.signals import INTERRUPTED
from sweeps.reading.study_file import bundled_names
from sweeps.running.jobs import Cluster, ClusterError
from sweeps.running.upload import Upload, UploadError

_MOST_NAMED = 8
"""Largest number of credential files that a message lists."""


@click.command()
@on_study
@placement_options
@click.option(
    "--address",
    envvar="RAY_API_SERVER_ADDRESS",
    callback=without_secret(web_address, "RAY_API_SERVER_ADDRESS"),
    help="The cluster's dashboard, http://HOST:8265.",
)
@click.option(
    "--python",
    envvar="MIXSWEEP_PYTHON",
    help="Python interpreter on the head node; default: the path of this interpreter if the head "
    "has it, else python.",
)
@click.option(
    "--data",
    envvar="MIXSWEEP_DATA",
    help="Folder of datasets on the cluster; default: the cluster's own default.",
)
@click.option("--follow/--no-follow", default=True, help="Print the job's output until it ends.")
@click.option(
    "--list-files",
    is_flag=True,
    help="Print the files that would be uploaded, with their sizes, and submit nothing.",
)
@click.option(
    "--leave-out-credentials",
    is_flag=True,
    help="Submit although files in the folder look like credentials; they are not uploaded.",
)
def submit(  # noqa: PLR0913  each is an option
    request: Request,
    slots: int | None,
    gpus_per_run: float | Literal["auto"] | None,
    cpus_per_run: int,
    device: str | None,
    keep_final_states: bool,
    address: str | None,
    python: str | None,
    data: str | None,
    follow: bool,
    list_files: bool,
    leave_out_credentials: bool,
) -> int:
    """Run a study as a job of a Ray cluster, and exit with the job's exit code.

    The working directory is uploaded, without results folders, downloaded datasets, files that
    .gitignore or .rayignore exclude, and files that look like credentials. Paths in options are
    paths on the cluster; relative ones are made absolute on this machine.
    """
    places = _places(request)
    environment = _shipped_environment()
    upload = _upload(request.home, data, environment.pop("excludes"))
    if list_files:
        _list(upload)
        return DONE
    if address is None:
        raise RefusedError(
            "--address is missing; give the address of the cluster's dashboard, http://HOST:8265"
        )
    options = {
        **places,
        "--slots": slots,
        "--gpus-per-run": gpus_per_run,
        "--cpus-per-run": cpus_per_run,
        "--device": device,
    }
    bundled = request.reference in bundled_names()
    reference = request.reference if bundled else _uploaded(request.reference, upload)
    plugins = [_uploaded(file, upload) for file in request.plugins]
    _require_no_credentials(upload, may_leave_out=leave_out_credentials)
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
            click.echo(f"study {request.study.name!r} is already run by job {running}", err=True)
            click.echo(_advice(cluster, running), err=True)
            return BUSY
        job = f"{request.study.name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        environment["env_vars"] |= _variables(job, data)
        with temporary_folder(Path(tempfile.gettempdir())) as folder:
            archive = folder / "upload.zip"
            upload.write(archive)
            environment["working_dir"] = str(archive)
            cluster.start(job, _entrypoint(python, arguments), environment, study)
        click.echo(f"job       {job}\nstore     {_shown_store(places, study['store'])}", err=True)
        if not follow:
            click.echo(_advice(cluster, job), err=True)
            return DONE
        try:
            return cluster.follow(job)
        except KeyboardInterrupt:
            click.echo(f"\nthe job {job} continues\n{_advice(cluster, job)}", err=True)
            return INTERRUPTED
    except (ClusterError, UploadError) as error:
        raise RefusedError(str(error)) from error


def _places(request: Request) -> dict[str, str]:
    """Return the options `--home`, `--store`, ... for the job, with absolute paths.

    Raises:
        RefusedError: If an address has a password, because everyone who may list jobs sees their
            commands.
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


def _shown_store(places: Mapping[str, str], store: str) -> str:
    """Return a text that says where the job stores its runs, as far as it is known here."""
    if "--store" in places:
        return f"{store} on the cluster"
    return f"{store} on the cluster, unless {STORE[1]} was set when its head node was started"


def _absolute(place: str) -> str:
    """Make a path or the address of a SQLite file absolute; return other addresses unchanged.

    A relative path would lead into Ray's copy of the upload, which is deleted after the job.
    """
    if (file := database_file(place)) is not None:
        return sqlite_url(Path(os.path.realpath(file)))
    return place if "://" in place else os.path.realpath(place)


def _uploaded(name: str, upload: Upload) -> str:
    """Return the path of a file as the job sees it: relative to the uploaded working directory.

    Raises:
        RefusedError: If the file is outside of the working directory, or is not uploaded.
    """
    file, here = local_path(name).resolve(), Path.cwd()
    if not file.is_relative_to(here):
        raise RefusedError(
            f"{name}: this file is outside of the working directory, and a job gets no other "
            "files; move it there, or submit from the folder that contains it"
        )
    name = str(file.relative_to(here))
    if name not in upload.files:
        raise RefusedError(
            f"{name}: this file is not uploaded, because .gitignore, .rayignore or the excludes in "
            "cluster/runtime-env.yaml name it; change them, or move the file"
        )
    return name


def _entrypoint(python: str | None, arguments: Sequence[str]) -> str:
    """Return the shell command that a job runs.

    It contains the path of the interpreter, because `python` alone would be the first one on the
    PATH of the user who started the head node.

    Args:
        python: The interpreter; None for this process's interpreter, or `python` if the cluster
            lacks it.
        arguments: Arguments of `mixsweep`.
    """
    run = shlex.join(["-m", "mixsweep", *arguments])
    if python is None:
        interpreter = f'"$(command -v {shlex.quote(sys.executable)} || command -v python)"'
    else:
        interpreter = shlex.quote(python)
    return f"exec {interpreter} {run}"


def _shipped_environment() -> dict[str, Any]:
    """Return Ray's runtime environment for the job and its workers, from `runtime-env.yaml`."""
    shipped = (resources.files("cluster") / "runtime-env.yaml").read_text()
    environment: dict[str, Any] = yaml.safe_load(shipped)
    return environment


def _variables(job: str, data: str | None) -> dict[str, str]:
    """Return the environment variables of a job: its id, the code version and the data folder."""
    from reports.numbers.code_origin import JOB_VARIABLE, code_variables, describe_repository

    code = describe_repository(Path.cwd())
    return {
        JOB_VARIABLE: job,
        **({} if code is None else code_variables(code)),
        **({} if data is None else {"MIXSWEEP_DATA": str(local_path(data).absolute())}),
    }


def _upload(home: Home, data: str | None, excludes: Sequence[str]) -> Upload:
    """Find the files of the working directory to upload: all but results, datasets and excludes.

    Raises:
        RefusedError: If a file cannot be uploaded.
    """
    here = Path.cwd()
    roots = [data] if data is not None else [needs.root() for needs in all_data_needs().values()]
    databases = [database_file(url) or url for url in (home.tracking_uri, home.optuna_url)]
    places = map(str, (home.folder, home.store, *roots, *databases))
    kept = {Path(os.path.realpath(place)) for place in places if "://" not in place}
    try:
        return Upload.of(here, excludes=excludes, kept=kept - {Path(os.path.realpath(here))})
    except UploadError as error:
        raise RefusedError(str(error)) from error


def _list(upload: Upload) -> None:
    """Print each file to upload with its size; print excluded credentials to stderr."""
    sizes = [upload.num_bytes(name) for name in upload.files]
    for name, size in zip(upload.files, sizes, strict=True):
        click.echo(f"{size:>12,}  {printable(name)}")
    click.echo(f"{len(sizes)} files, {sum(sizes) / 1e6:,.1f} MB", err=True)
    for name in upload.credentials:
        click.echo(f"left out, looks like a credential: {printable(name)}", err=True)


def _require_no_credentials(upload: Upload, *, may_leave_out: bool) -> None:
    """Check that a working directory has no credentials, or that the user agreed to leave them out.

    Raises:
        RefusedError: If there are credentials and `may_leave_out` is False.
    """
    found = upload.credentials
    if not found:
        return
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    named = printable(", ".join(found[:_MOST_NAMED])) + more
    if may_leave_out:
        click.echo(f"left out  {named}", err=True)
        return
    raise RefusedError(
        f"{upload.folder}: contains files that look like credentials, which are never uploaded: "
        f"{named}; submit from a folder without them, add --leave-out-credentials to continue "
        "without these files, or add a line !NAME to .rayignore for a file that is harmless"
    )


def _advice(cluster: Cluster, job: str) -> str:
    """Return the Ray commands with which a user follows and stops a job."""
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    token = "" if path is None else f" RAY_AUTH_TOKEN_PATH={shlex.quote(path)}"
    ray = f"RAY_AUTH_MODE=token{token} ray job {{}} {job} --address {cluster.address}"
    return f"follow    {ray.format('logs --follow')}\nstop      {ray.format('stop')}"
