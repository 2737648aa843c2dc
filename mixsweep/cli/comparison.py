"""Comparison: two arms head to head, or several studies side by side in one table."""

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from mixsweep.cli.options import home_of
from mixsweep.request import DONE, SOME_FAILED, RefusedError, Request
from sweeps.machine.command_line import STORE
from sweeps.machine.home import Home
from sweeps.reading.tree_reader import named
from sweeps.state.results import read_predictions
from sweeps.state.statements import statements_of


def places_of(homes: Sequence[Path], stores: Sequence[str]) -> tuple[Home, ...]:
    """Return the homes to compare: one per `--home`, or one per `--store`."""
    # Click's envvar would split a path at blanks or colons; it does not apply to several homes.
    if not stores and len(homes) < 2 and (store := os.environ.get(STORE[1])):
        stores = (store,)
    homes = homes or (Path(os.environ.get("MIXSWEEP_HOME") or "runs"),)
    if not stores:
        return tuple(home_of(home, None) for home in dict.fromkeys(homes))
    if len(homes) > 1:
        raise RefusedError(
            f"--store allows at most one --home, got (homes={len(homes)}, stores={len(stores)})"
        )
    return tuple(home_of(homes[0], store) for store in dict.fromkeys(stores))


def head_to_head(
    requests: Sequence[Request], arms: tuple[str, str], metric: str | None, *, as_json: bool
) -> int:
    """Print the differences of two arms, paired by seed."""
    from reports.tables import head_to_head as tables

    first, second = (_arm(name, requests) for name in arms)
    for request, _ in (first, second):
        request.require_store()
    sides = [
        tables.StudyArm(study=request.grown, arm=arm, results=request.results())
        for request, arm in (first, second)
    ]
    metric = metric or sides[0].study.headline
    try:
        found = tables.head_to_head(sides[0], sides[1], metric)
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


def side_by_side(requests: Sequence[Request], out: Path | None, *, as_json: bool) -> int:
    """Print one table with a column per study and home; return the exit code."""
    from reports.pages.report_folders import replace_files
    from reports.tables.joined import holds_joined, join
    from reports.tables.joined_columns import JoinedColumn

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
        joined = join(columns, command=requests[0].command)
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
    """Find the study that has an arm; return the study and the name of the arm."""
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
