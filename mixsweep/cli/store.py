"""Store commands: list and check the files of a store of results, and free disk space."""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from mixsweep.cli.options import (
    StudyCommand,
    command_line,
    home_of,
    home_option,
    on_study,
    store_option,
)
from mixsweep.launching.stock import Holding, prune, state_bytes, take_stock
from mixsweep.request import DONE, SOME_FAILED, RefusedError, Request, stored_elsewhere
from mixup_core.addresses import store_address
from mixup_core.keys import stage_keys
from mixup_core.plugins.source import PluginError
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from sweeps.leasing.lease import Lease, unused
from sweeps.machine.databases import DatabaseError
from sweeps.machine.home import Home
from sweeps.machine.terminal_text import padded, screen, shortened, width_of
from sweeps.reading.study_file import StudyError, load_study
from sweeps.state.ledger import forget_launch, launches, reference_of
from sweeps.state.statements import note_forgotten
from sweeps.study.study import Study


@click.group("store")
def store_commands() -> None:
    """List and check the checkpoint store, and free disk space."""


def _grown(requests: Sequence[Request]) -> tuple[Study, ...]:
    """Return the studies of requests, each once, with search points and added seeds."""
    named = {(request.study.name, request.study.settings): request.grown for request in requests}
    return tuple(named.values())


def _require_content(store: Store) -> None:
    """Check that a store is not empty; if it is, its address may be wrong."""
    if not store.keys() and not store.quarantined():
        raise RefusedError(f"{store_address(store.url)}: nothing is stored there")


def _launched(
    place: Home, *, all_settings: bool = False
) -> tuple[tuple[Study, ...], dict[str, str]]:
    """Return the studies that were launched in a store, and why others cannot be read.

    Each has the settings of its newest launch; with `all_settings`, there is one study for every
    settings of its launches. A search has its proposed points.
    """
    store = Store(place.store)
    chosen = {
        (launch.study, launch.settings if all_settings else ""): launch
        for launch in launches(store)
    }
    studies, unread = [], {}
    for (name, _), launch in sorted(chosen.items()):
        reference = reference_of(name, launch.settings)
        try:
            study = load_study(reference, (), store.url, reads_only=True)
            grown = Request(reference=reference, overrides=(), study=study, home=place).grown
        except (StudyError, PluginError, DatabaseError) as error:
            *_, unread[reference] = str(error).splitlines()
        else:
            studies.append(grown)
    return tuple(studies), unread


@store_commands.command("list", cls=StudyCommand)
@click.argument("studies", nargs=-1, metavar="[STUDY...]")
@home_option
@store_option
def list_store(studies: Sequence[str], home: Path, store_url: str | None) -> int:
    """Show the size of the stored files of studies and of all others, and how much can be freed.

    Without STUDY, every study that was launched in this store is shown, with its newest settings.
    """
    place = home_of(home, store_url)
    requests = [Request.read(study, home=place, reads_only=True) for study in studies]
    store = Store(place.store)
    _require_content(store)
    listed, unread = (_grown(requests), {}) if requests else _launched(place)
    _tell_stock(take_stock(listed, store), store)
    for name, reason in unread.items():
        message = f"{name} is counted in (others), because this study cannot be read: {reason}"
        click.echo(message, err=True)
    _say_elsewhere(listed, place)
    return DONE


def _tell_stock(holdings: Sequence[Holding], store: Store) -> None:
    """Print the sizes of stored files as a table, one row per study."""
    cells = {
        "finished": [f"{h.num_finished}/{h.num_runs}" if h.num_runs else "" for h in holdings],
        "stages": [str(len(h.stages)) for h in holdings],
        "states": [str(h.num_states) for h in holdings],
        "MB": [_megabytes(h.stages) for h in holdings],
        "prunable MB": [_megabytes(h.prunable) for h in holdings],
        "predictions MB": [f"{sum(h.predictions.values()) / 1e6:,.1f}" for h in holdings],
    }
    titles = ["study", *(holding.title for holding in holdings)]
    most = max(map(width_of, titles))
    widths = {name: max(len(name), *map(len, column)) for name, column in cells.items()}
    if (size := screen()) is not None:
        columns = size.columns
        for left_out in ("states", "stages"):
            if columns - sum(widths.values()) - 2 * len(widths) <= min(most, 12):
                del widths[left_out]
        most = min(most, max(12, columns - 1 - sum(widths.values()) - 2 * len(widths)))
    rows = zip(*([name, *cells[name]] for name in widths), strict=True)
    lines = [
        "  ".join((padded(shortened(title, most), most), *map(str.rjust, row, widths.values())))
        for title, row in zip(titles, rows, strict=True)
    ]
    click.echo("\n".join(lines))
    if quarantined := len(store.quarantined()):
        click.echo(f"{quarantined} damaged files are in quarantine/")


def _megabytes(stages: Iterable[Stage]) -> str:
    return f"{state_bytes(stages) / 1e6:,.1f}"


def _say_elsewhere(studies: Sequence[Study], place: Home) -> None:
    """Print which finished runs of the studies are counted in `(others)`, the table's last row."""
    store = Store(place.store)
    shown = [run for study in studies for run in study.runs()]
    for study in studies:
        own_ends = {stage_keys(run.config)[-1] for run in study.runs()}
        point_ends = {
            end
            for launch in launches(store, study.name)
            if study.search is not None and launch.settings == study.settings
            for end in launch.ends
        }
        if lost := len(point_ends & set(store.keys()) - own_ends):
            click.echo(
                f"{study.name}: {lost} finished runs of its search are counted in (others), for "
                f"the search's history is not in {place.shown_optuna}; set --home or "
                "MIXSWEEP_OPTUNA",
                err=True,
            )
        for sentence in stored_elsewhere(study, shown, store):
            click.echo(f"{study.name}: {sentence}; counted in (others)", err=True)


@store_commands.command("verify", cls=StudyCommand)
@home_option
@store_option
def verify_store(home: Path, store_url: str | None) -> int:
    """Check every file of the store against its sha256, and move damaged files to quarantine.

    Exit code 1 if a file is damaged.
    """
    store = Store(Home(folder=home, store_url=store_url).store)
    _require_content(store)
    faults = store.verify()
    for fault in faults:
        click.echo(fault, err=True)
    click.echo(f"{len(faults)} files are damaged or missing" if faults else "no file is damaged")
    return SOME_FAILED if faults else DONE


@store_commands.command("prune", cls=StudyCommand)
@click.option("--yes", is_flag=True, help="Delete the states; without --yes they are only listed.")
@click.option(
    "--predictions",
    "with_predictions",
    is_flag=True,
    help="Delete predictions too; reports then lack calibration, ensembles and errors per class.",
)
@click.option(
    "--forget",
    is_flag=True,
    help="Delete all results of the studies, as if they had never been trained or added here; "
    "those that other launches share, of other studies or settings, are kept.",
)
@on_study("any", reads_only=True)
def prune_store(
    requests: Sequence[Request], place: Home, yes: bool, with_predictions: bool, forget: bool
) -> int:
    """Delete the states (checkpoints) that no run of the studies will resume from.

    Records are deleted with `--forget` only, predictions with `--predictions` or `--forget`.
    """
    if not (studies := _grown(requests)):
        raise RefusedError(
            "no study is named; name the studies whose states (checkpoints) may be deleted"
        )
    store = Store(place.store)
    _require_content(store)
    if forget:
        return _forget(studies, place, yes=yes)
    names = {study.name for study in studies}
    with contextlib.ExitStack() as leases:
        for name in names if yes else ():
            leases.enter_context(Lease.acquire(store, name, command_line()))
        stock = take_stock(studies, store)
        holdings = stock[:-1]
        prunable = [stage for holding in holdings for stage in holding.prunable]
        keys = [stage.key for stage in prunable]
        free = set(unused(store, keys, names) if yes else keys)
        _tell_stock(stock, store)
        for holding in holdings:
            for stage in holding.prunable:
                if stage.key in free:
                    text = f"state of {stage.epochs} epochs, stage {stage.key}"
                    click.echo(f"{holding.title}  {text}")
            if holding.predictions and with_predictions:
                click.echo(f"{holding.title}  predictions of {len(holding.predictions)} runs")
        if yes:
            freed = prune(holdings, store, free, with_predictions=with_predictions)
            click.echo(f"freed {freed / 1e6:,.1f} MB")
        elif prunable or any(h.predictions and with_predictions for h in holdings):
            click.echo("nothing was deleted; add --yes to delete", err=True)
    _say_elsewhere(studies, place)
    return DONE


def _forget(studies: Sequence[Study], place: Home, *, yes: bool) -> int:
    """Delete the results of studies, but not those that other launched studies share."""
    store, names = Store(place.store), {study.name for study in studies}
    if searches := [study.name for study in studies if study.search is not None]:
        raise RefusedError(
            f"{searches[0]}: Optuna's storage has the points of its search; delete the home instead"
        )
    launched, unread = _launched(place, all_settings=True)
    own = {reference_of(study.name, study.settings) for study in studies}
    for name in sorted(unread.keys() - own):
        raise RefusedError(
            f"nothing is deleted, because {name} cannot be read, and may share results: "
            f"{unread[name]}"
        )
    others = [s for s in launched if reference_of(s.name, s.settings) not in own]
    with contextlib.ExitStack() as leases:
        for name in names if yes else ():
            leases.enter_context(Lease.acquire(store, name, command_line()))
        stock = take_stock((*others, *studies), store)[len(others) : -1]
        free = set(unused(store, [s.key for h in stock for s in h.stages], names))
        shared = {run.key for study in others for run in study.runs()}
        for study, holding in zip(studies, stock, strict=True):
            keys = [stage.key for stage in holding.stages if stage.key in free]
            finished = {stage_keys(run.config)[-1] for run in study.runs()} & free
            click.echo(f"{study.name}: {len(finished)} finished runs, {len(keys)} stages")
            if not yes:
                continue
            note_forgotten(study.name, finished, store)
            store.predictions.remove(holding.predictions)
            store.delete(*keys)
            for key in {run.key for run in study.runs()} - shared:
                store.failures.remove(key)
            for launch in launches(store, study.name):
                if launch.settings == study.settings:
                    forget_launch(launch, store)
    if not yes:
        click.echo("nothing was deleted; add --yes to delete", err=True)
    return DONE
