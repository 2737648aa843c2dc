"""share and add: write the results of a study to one file, and add the file to another home."""

import dataclasses
import shlex
import socket
import tempfile
from pathlib import Path

import click

from mixsweep.cli.options import (
    LocalPath,
    StudyCommand,
    command_line,
    home_option,
    on_study,
    plugin_option,
    store_option,
)
from mixsweep.request import DONE, SOME_FAILED, RefusedError, Request
from mixup_core.addresses import without_secrets
from mixup_core.store.checkpoints import Store
from mixup_core.temporary import output_file, temporary_folder
from sweeps.leasing.lease import Lease
from sweeps.machine.command_line import program
from sweeps.machine.home import Home
from sweeps.machine.processes import user
from sweeps.reading.study_file import plugin_options, study_of_launch
from sweeps.state.archives import (
    StudyArchiveError,
    add_content,
    content_of,
    is_archive,
    unpack,
    write_archive,
)
from sweeps.state.ledger import Launch, known_data, note, stored_launch


@click.command(cls=StudyCommand)
@click.option(
    "--out",
    type=LocalPath(dir_okay=False),
    help="File to write; default: exports/STUDY.mixsweep.zip in the home.",
)
@on_study(reads_only=True)
def share(request: Request, out: Path | None) -> int:
    """Write the records and predictions of a study to one file, for another home.

    `mixsweep add FILE` adds the file to the other home, which makes the report from it. Weights are
    not included. Exit code 1 if some runs are missing.
    """
    study = request.study
    if study.search is not None:
        raise RefusedError(
            f"{study.name}: the search's trials are in Optuna's storage, which archives do not "
            "contain; share the results folder instead, or a study whose arms are the points found"
        )
    request.require_stored()
    recorded = stored_launch(request.store, f"{study.name}@{study.settings}")
    launch = recorded or Launch.of(request.grown, command_line())
    results = request.results()
    if not any(result.records for result in results):
        advice = f"{request.spell('run')} trains"
        if any(result.failure for result in results):
            advice = f"archives contain no failures, which {request.spell('status')} shows"
        raise RefusedError(f"{study.name}: no run has stored an epoch; {advice}")
    file = out or request.home.folder / "exports" / f"{study.name}.mixsweep.zip"
    packed = Launch.of(request.grown, launch.command, launch.at_ms)
    _require_no_secrets(packed)
    packed = dataclasses.replace(packed, source=without_secrets(packed.source))
    known = known_data(request.store, study.name)
    with output_file(file, "an archive of a study", is_archive, makes_folder=out is None) as place:
        runs = write_archive(place, packed, known, results, request.store)
    size = file.stat().st_size
    spelled = f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"
    click.echo(f"{file}: {runs} of {len(results)} runs, {spelled}")
    _say_plugins(launch)
    return DONE if runs == len(results) else SOME_FAILED


@click.command(cls=StudyCommand)
@click.argument("file", type=LocalPath(dir_okay=False, exists=True))
@home_option
@store_option
@plugin_option
def add(file: Path, home: Path, store_url: str | None, plugins: tuple[str, ...]) -> int:
    """Add a study from a file of `mixsweep share` to this home; existing results are not changed.

    The whole file is checked before anything is written. Reports and `mixsweep status` say which
    runs were added, because the file cannot prove how they were trained. Exit code 1 if some runs
    are already stored here with other records.
    """
    from reports.numbers.looks import reached_study

    place = Home(folder=home, store_url=store_url)
    store = Store(place.store)
    with temporary_folder(Path(tempfile.gettempdir())) as folder:
        unpacked = folder / "archive"
        unpacked.mkdir()
        try:
            archive = unpack(file, unpacked)
            study = study_of_launch(archive.launch, str(file), archive.known, reads_only=True)
            brought = content_of(archive, study)
        except StudyArchiveError as error:
            raise RefusedError(str(error)) from error
        launch = brought.launch
        with Lease.acquire(store, study.name, command_line()):
            added_by = f"{user()} on {socket.gethostname()}"
            added = add_content(brought, store, added_by)
            if study.until is not None:  # the archive has the seeds that the looks needed
                of_looks = Launch.of(reached_study(study, store), launch.command, launch.at_ms)
                launch = dataclasses.replace(of_looks, archive=launch.archive)
            note(launch, brought.facts, store)
    click.echo(
        f"{study.name}: {added.new} runs added, {added.known} already here with the same records"
    )
    for key in added.other:
        click.echo(f"stage {key}: this store has other records, which are kept", err=True)
    options = "".join(f" --plugin {shlex.quote(file)}" for file in plugins)
    if not options:
        _say_plugins(launch)
    click.echo(f"next      {program()} report {study.name} {place.options}{options}", err=True)
    return SOME_FAILED if added.other else DONE


def _require_no_secrets(launch: Launch) -> None:
    """Check that no setting has a secret; without it, the arm would have other keys and no runs."""
    for arm, config in launch.arms.items():
        for path, value in config.items():
            if isinstance(value, str) and (hidden := without_secrets(value)) != value:
                raise RefusedError(
                    f"{launch.study}: {path} of the arm {arm} is an address that may contain a "
                    f"secret ({hidden}), and the archive would contain it; remove the secret from "
                    "the study file and train again"
                )


def _say_plugins(launch: Launch) -> None:
    """Print the plugin files that training needs and an archive does not contain."""
    if options := plugin_options(launch):
        sentence = f"launched with {' '.join(options)}; needed to train, rarely to read results"
        click.echo(f"plugin    {sentence}", err=True)
