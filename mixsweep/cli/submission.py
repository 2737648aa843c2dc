"""submit: send a study as a job to a Ray cluster, where the job runs `mixsweep run`."""

import os
import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import click
import yaml

from mixsweep.cli.job_commands import given, spell_advice, spell_entrypoint, spell_fetch
from mixsweep.cli.options import StudyCommand, on_study, placement_options, without_secret
from mixsweep.request import DONE, RefusedError, Request
from mixup_core.addresses import local_path, web_address
from mixup_core.config.written_forms import flatten
from mixup_core.rules import printable
from mixup_core.temporary import temporary_folder
from reports.numbers.code_origin import code_variables, describe_code, sender_variables
from sweeps.leasing.holders import BUSY
from sweeps.machine.command_line import OPTUNA, STORE, TRACKING
from sweeps.machine.databases import database_file, sqlite_url
from sweeps.machine.signals import INTERRUPTED
from sweeps.reading.study_file import bundled_names
from sweeps.running.jobs import Cluster
from sweeps.running.upload import Upload, checkout


@click.command(cls=StudyCommand)
@placement_options
@click.option(
    "--address",
    envvar="RAY_API_SERVER_ADDRESS",
    callback=without_secret(web_address, "RAY_API_SERVER_ADDRESS"),
    help="The cluster's dashboard, http://HOST:8265.",
)
@click.option("--follow/--no-follow", default=True, help="Print the job's output until it ends.")
@click.option(
    "--list-files",
    is_flag=True,
    help="Print the files that would be uploaded, with their sizes, and submit nothing.",
)
@on_study(databases=True)
def submit(
    request: Request, address: str | None, follow: bool, list_files: bool, **placement: Any
) -> int:
    """Run a study as a job of a Ray cluster, and exit with the job's exit code.

    Uploaded are the study file, its plugins, files below its folder that it names, and mixsweep
    itself if it runs from a checkout. Paths in options are paths on the cluster; relative ones are
    made absolute on this machine. The variables MIXSWEEP_PYTHON (interpreter on the head node) and
    MIXSWEEP_DATA (folder of datasets on the cluster) are passed on.
    """
    places = _places(request)
    environment = _shipped_environment()
    upload, study_arguments = _upload(request)
    if list_files:
        _list(upload, environment)
        return DONE
    if address is None:
        raise RefusedError(
            "--address is missing; give the address of the cluster's dashboard, http://HOST:8265"
        )
    cluster = Cluster.connect(address.rstrip("/"))
    # Frozen: these keys. A job that another version submitted must have them, or a study is run by
    # two jobs; tests/sweeps/running/test_jobs.py fails.
    study = {"study": request.study.name, "store": places.get("--store", request.home.store)}
    if (running := cluster.job_of(study)) is not None:
        click.echo(
            f"study {request.study.name!r} is already run by job {printable(running)}", err=True
        )
        click.echo(spell_advice(cluster.address, running), err=True)
        return BUSY
    arguments = ["run", *study_arguments, *given(places), *_placement(**placement)]
    job = _start(cluster, arguments, study, upload, environment)
    location = f"{study['store']} on the cluster"
    if "--store" not in places:
        location += f", unless {STORE[1]} was set when its head node was started"
    click.echo(f"job       {job}\nstore     {location}", err=True)
    click.echo(f"fetch     {spell_fetch(cluster.address, request, places)}", err=True)
    if not follow:
        click.echo(spell_advice(cluster.address, job), err=True)
        return DONE
    try:
        return cluster.follow(job)
    except KeyboardInterrupt:
        advice = spell_advice(cluster.address, job)
        click.echo(f"\nthe job {job} continues\n{advice}", err=True)
        return INTERRUPTED


def _placement(
    *, slots: int | None, gpus_per_run: float | None, device: str | None, keep_final_states: bool
) -> Iterator[str]:
    """Yield the options of `placement_options` as arguments of `run`."""
    yield from given({"--slots": slots, "--gpus-per-run": gpus_per_run, "--device": device})
    if keep_final_states:
        yield "--keep-final-states"


def _upload(request: Request) -> tuple[Upload, list[str]]:
    """Return the files of a job, and the arguments that name the study for `run`."""
    file = _study_file(request)
    plugins = [local_path(plugin) for plugin in request.plugins]
    if file is None:
        upload, reference = Upload.of(plugins, folder=Path()), request.reference
    else:
        of_study = [file.parent / name for name in request.study.plugins]
        named = _named_files(request, file.parent)
        upload = Upload.of([file, *of_study, *plugins, *named], folder=file.parent)
        reference = f"./{upload.name_of(file)}"  # not an option, nor a bundled study
    uploaded = tuple(upload.name_of(plugin) for plugin in plugins)
    return upload, [reference, *replace(request, plugins=uploaded).changes()]


def _start(
    cluster: Cluster,
    arguments: Sequence[str],
    study: Mapping[str, str],
    upload: Upload,
    environment: dict[str, Any],
) -> str:
    """Start a job that runs `mixsweep` with some arguments; return its name."""
    job = f"{study['study']}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    with temporary_folder(Path(tempfile.gettempdir())) as folder:
        archive = folder / "upload.zip"
        upload.write(archive)
        environment = environment | {"working_dir": str(archive)}
        environment["env_vars"] = environment["env_vars"] | _variables()
        cluster.start(job, spell_entrypoint(arguments), environment, study)
    return job


def _places(request: Request) -> dict[str, str]:
    """Return the options `--home`, `--store`, ... for the job, with absolute paths."""
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
    """Make a path or the address of a SQLite file absolute; return other addresses unchanged."""
    if (file := database_file(place)) is not None:
        return sqlite_url(Path(os.path.realpath(file)))
    return place if "://" in place else os.path.realpath(place)


def _study_file(request: Request) -> Path | None:
    """Return the file of a study; None for a bundled study."""
    if request.reference in bundled_names():
        return None
    file = local_path(request.reference)
    if not file.is_file():
        raise RefusedError(f"{request.reference}: a job needs the study file; name the file")
    return file.absolute()


def _named_files(request: Request, folder: Path) -> list[Path]:
    """Return the files below the folder of a study file that the study names, such as weights."""
    files, elsewhere = [], []
    places = {
        Path(value): path
        for config in request.study.arms.values()
        for path, value in flatten(config).items()
        if isinstance(value, str) and Path(value).is_absolute() and Path(value).exists()
    }
    for place, path in places.items():
        if not place.resolve().is_relative_to(folder.resolve()):
            elsewhere.append(str(place))
        elif place.is_dir():
            raise RefusedError(
                f"{place}: folders of photos are not uploaded ({path}); copy it to a file system "
                "that this machine and all nodes share, and name its absolute path in the study"
            )
        else:
            files.append(place)
    for text in elsewhere:
        click.echo(f"not uploaded, read on the cluster: {printable(text)}", err=True)
    return files


def _shipped_environment() -> dict[str, Any]:
    """Return Ray's runtime environment for the job and its workers, from `runtime-env.yaml`."""
    shipped = (resources.files("cluster") / "runtime-env.yaml").read_text()
    environment: dict[str, Any] = yaml.safe_load(shipped)
    del environment["excludes"]  # for `ray job submit --working-dir`
    return environment


def _variables() -> dict[str, str]:
    """Return the environment variables of a job: version and commit of the code, data folder."""
    data = os.environ.get("MIXSWEEP_DATA")
    is_uploaded = checkout() is not None
    code = describe_code() if is_uploaded else None
    return {
        **({} if is_uploaded else sender_variables()),
        **({} if code is None else code_variables(code)),
        **({} if not data else {"MIXSWEEP_DATA": str(local_path(data).absolute())}),
    }


def _list(upload: Upload, environment: Mapping[str, Any]) -> None:
    """Print each file to upload with its size, and the runtime environment."""
    sizes = {name: file.stat().st_size for name, file in upload.files.items()}
    for name, size in sizes.items():
        click.echo(f"{size:>12,}  {printable(name)}")
    click.echo(f"{len(sizes)} files, {sum(sizes.values()) / 1e6:,.1f} MB", err=True)
    click.echo(f"\nruntime environment of the job\n{yaml.safe_dump(environment).strip()}", err=True)
