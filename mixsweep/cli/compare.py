"""compare: compare two arms, or several studies in one table."""

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from mixsweep.cli.options import LocalPath, json_option, loading_option, set_option, without_secret
from mixsweep.cli.recorded_line import command_line
from mixsweep.cli.request import DONE, SOME_FAILED, RefusedError, Request
from mixup_core.addresses import store_address
from sweeps.machine.arguments import STORE
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study
from sweeps.reading.tree_reader import named
from sweeps.state.results import read_predictions
from sweeps.state.statements import statements_of


@click.command()
@click.argument("studies", nargs=-1, required=True, metavar="STUDY...")
@click.option(
    "--arms",
    nargs=2,
    metavar="A B",
    help="Two arms to compare, paired by seed; write STUDY/ARM if several of the studies have an "
    "arm of that name. Default: all arms, in one column for each study and each home.",
)
@click.option(
    "--metric",
    help="Metric by which --arms compares. Default: the headline metric of the first study.",
)
@loading_option
@set_option
@click.option(
    "--home",
    "homes",
    type=LocalPath(file_okay=False),
    multiple=True,
    help="Folder that contains all results. Default: MIXSWEEP_HOME, or else runs. Repeat it to "
    "compare the results of several machines.",
)
@click.option(
    "--store",
    "stores",
    multiple=True,
    callback=without_secret(store_address, STORE[1]),
    help="Checkpoint store to read instead of that of --home, a path or an fsspec URL; repeatable.",
)
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    help="Folder to write the table to, as Markdown, LaTeX and CSV, with its runs and provenance.",
)
@json_option
def compare(  # noqa: PLR0913  its options
    studies: Sequence[str],
    arms: tuple[str, str] | None,
    metric: str | None,
    overrides: Sequence[str],
    homes: Sequence[Path],
    stores: Sequence[str],
    out: Path | None,
    as_json: bool,
) -> int:
    """Compare two arms, paired by seed, or show studies side by side.

    `compare STUDY --arms A B` compares two arms of one study, or of several studies. `compare STUDY
    OTHER` prints one table with a column per study; the studies may differ only in their datasets.
    `compare STUDY --home HERE --home THERE` prints one column per machine. Exit code 1 if runs are
    missing in a column.
    """
    places = _places(homes, stores)
    requests = [
        Request(
            reference=reference,
            overrides=tuple(overrides),
            study=load_study(reference, overrides, home.store),
            home=home,
        )
        for reference in dict.fromkeys(studies)
        for home in places
    ]
    if arms is None:
        return _side_by_side(requests, metric, out, as_json=as_json)
    if len(places) > 1 or out is not None:
        raise RefusedError("--arms needs a single --home and no --out; remove the others")
    return _head_to_head(requests, arms, metric, as_json=as_json)


def _places(homes: Sequence[Path], stores: Sequence[str]) -> tuple[Home, ...]:
    """Return the homes to compare: one per `--home`, or one per `--store`.

    Raises:
        RefusedError: If several homes and also a store are given.
    """
    # Click's envvar would split a path at blanks or colons; it does not apply to several homes.
    if not stores and len(homes) < 2 and (store := os.environ.get(STORE[1])):
        stores = (store,)
    homes = homes or (Path(os.environ.get("MIXSWEEP_HOME") or "runs"),)
    if not stores:
        return tuple(Home(folder=home) for home in dict.fromkeys(homes))
    if len(homes) > 1:
        raise RefusedError(
            f"--store allows at most one --home, got (homes={len(homes)}, stores={len(stores)})"
        )
    return tuple(Home(folder=homes[0], store_url=store) for store in dict.fromkeys(stores))


def _head_to_head(
    requests: Sequence[Request], arms: tuple[str, str], metric: str | None, *, as_json: bool
) -> int:
    from reports.tables.head_to_head import StudyArm, head_to_head

    first, second = (_arm(name, requests) for name in arms)
    for request, _ in (first, second):
        request.require_store()
    sides = [
        StudyArm(study=request.grown, arm=arm, results=request.results())
        for request, arm in (first, second)
    ]
    metric = metric or sides[0].study.headline
    try:
        found = head_to_head(sides[0], sides[1], metric)
    except ValueError as error:
        for request in requests:
            request.say_elsewhere()
        raise RefusedError(str(error)) from error
    if as_json:
        click.echo(json.dumps(found.record(), indent=2))
        return DONE
    for listing in found.listings():
        click.echo(listing.markdown())
    return DONE


def _side_by_side(
    requests: Sequence[Request], metric: str | None, out: Path | None, *, as_json: bool
) -> int:
    from reports.pages.files import replace_files
    from reports.tables.joined import holds_joined, join
    from reports.tables.joined_columns import JoinedColumn

    if metric is not None:
        raise RefusedError(
            "--metric needs --arms: without --arms, the table compares studies and shows the "
            "headline metric of each"
        )
    if len(requests) < 2:
        raise RefusedError(
            "one study in one home has nothing to compare with: name another STUDY or --home, or "
            "two arms with --arms A B"
        )
    for request in requests:
        request.require_store()
    columns = [
        JoinedColumn(
            study=request.grown,
            results=request.results(),
            place=str(request.home.shown_store if request.home.store_url else request.home.folder),
            data_checksums=request.data_checksums(),
            predictions=partial(read_predictions, store=request.store),
            statements=statements_of(request.study, request.store),
        )
        for request in requests
    ]
    try:
        joined = join(columns, command=command_line())
    except ValueError as error:
        raise RefusedError(str(error)) from error
    if out is not None:
        replace_files(out, joined.files(), is_own=holds_joined(out))
        click.echo(f"tables    {out / 'joined.md'}", err=True)
    if as_json:
        told = {listing.name: list(listing.records) for listing in joined.listings()}
        click.echo(json.dumps({"columns": list(joined.heads), **told}, indent=2))
    else:
        click.echo(joined.markdown())
    missing = 0
    for head, request, column in zip(joined.heads, requests, columns, strict=True):
        lacking = [result for result in column.results if result.outcome != "complete"]
        missing += len(lacking)
        if lacking:
            of = len(column.results)
            click.echo(f"{head}: {of - len(lacking)}/{of} runs are finished", err=True)
            request.say_elsewhere()
    return SOME_FAILED if missing else DONE


def _arm(name: str, requests: Sequence[Request]) -> tuple[Request, str]:
    """Find the study that has an arm; return the study and the name of the arm.

    Args:
        name: Name of the arm as typed: ARM or STUDY/ARM.
        requests: The studies to search in.

    Raises:
        RefusedError: If no study or several studies have such an arm.
    """
    found = [
        (request, arm)
        for request in requests
        for arm in request.grown.arms
        if name in {arm, f"{request.study.name}/{arm}"}
    ]
    if not found:
        arms = "; ".join(f"{r.study.name} has {named(name, r.grown.arms)}" for r in requests)
        raise RefusedError(f"--arms: no arm is named {name!r}; {arms}")
    if len(found) > 1:
        spelled = " or ".join(f"{request.study.name}/{arm}" for request, arm in found)
        raise RefusedError(f"--arms {name!r}: several studies have this arm; write {spelled}")
    return found[0]
