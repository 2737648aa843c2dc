"""report: the report of a study, comparisons, exports and sources, or one site of all reports."""

import dataclasses
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from mixsweep.cli.ending import Ending
from mixsweep.cli.epochs_file import write_rows
from mixsweep.cli.options import (
    LocalPath,
    StudyCommand,
    command_line,
    home_of,
    json_option,
    plugin_option,
    set_option,
    without_secret,
)
from mixsweep.launching.conclusion import conclude, write_report
from mixsweep.request import DONE, SOME_FAILED, RefusedError, Request
from mixup_core.addresses import store_address
from mixup_core.numeric_settings import installed_version
from sweeps.machine.command_line import STORE
from sweeps.machine.home import Home
from sweeps.machine.terminal_text import fitted_text
from sweeps.reading.tree_reader import named
from sweeps.state.results import read_predictions
from sweeps.state.statements import look, statements_of
from sweeps.study.study import Study


@click.command(cls=StudyCommand)
@click.argument("studies", nargs=-1, metavar="[STUDY [OTHER...]]")
@click.option(
    "--home",
    "homes",
    type=LocalPath(file_okay=False),
    multiple=True,
    help="Folder that contains all results; default: MIXSWEEP_HOME, or else runs. Repeat it to "
    "compare the results of several machines.",
)
@click.option(
    "--store",
    "stores",
    multiple=True,
    callback=without_secret(store_address, STORE[1]),
    help="Checkpoint store to read instead of that of --home, a path or an fsspec URL; repeatable.",
)
@set_option
@plugin_option
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    help="Folder to write to; default: reports/STUDY in the home. A comparison of studies and the "
    "site of all reports are written only with --out; a comparison of arms is always printed.",
)
@click.option(
    "--arms",
    nargs=2,
    metavar="A B",
    help="Print a comparison of two arms, paired by seed; write STUDY/ARM if several studies have "
    "an arm of that name.",
)
@click.option(
    "--metric", help="Metric by which --arms compares; default: headline metric of arm A."
)
@click.option(
    "--epochs",
    type=LocalPath(),
    metavar="FILE",
    help="Write every stored epoch to FILE (.parquet or .csv): arm, seed and all metrics.",
)
@click.option(
    "--predictions",
    type=LocalPath(),
    metavar="FILE",
    help="Write the predictions of finished runs to FILE (.parquet or .csv), one row per image.",
)
@click.option("--cite", is_flag=True, help="Print BibTeX entries for the sources of the study.")
@json_option
def report(  # noqa: PLR0913  its options
    studies: Sequence[str],
    homes: Sequence[Path],
    stores: Sequence[str],
    overrides: Sequence[str],
    plugins: tuple[str, ...],
    out: Path | None,
    arms: tuple[str, str] | None,
    metric: str | None,
    epochs: Path | None,
    predictions: Path | None,
    cite: bool,
    as_json: bool,
) -> int:
    """Write a report from the stored results: tables, figures, and the software and hardware.

    `report STUDY OTHER` prints one table with a column per study; the studies may differ only in
    their datasets. With several --home, it has one column per home. `report STUDY --arms A B`
    compares two arms. Without STUDY, --out is the folder of one static site with all reports of the
    home: open its index.html, or copy it to any web server. A finished report is never replaced by
    an unfinished one. Exit code 1 if runs are missing.
    """
    places, line = places_of(homes, stores), command_line()
    requests = [
        Request.read(
            reference, overrides, home=home, plugins=plugins, command=line, reads_only=True
        )
        for reference in dict.fromkeys(studies)
        for home in places
    ]
    outputs = {"--epochs": bool(epochs), "--predictions": bool(predictions), "--cite": cite}
    if not requests:
        several = {"several --home": len(homes) > 1, "--store": bool(stores), "--json": as_json}
        chosen = {"--arms": bool(arms), "--metric": bool(metric), "--set": bool(overrides)}
        _require_alone("a site of all reports", several | chosen | outputs)
        return _write_site(places[0].folder, out)
    if arms is not None:
        _require_alone("--arms", {"several --home": len(places) > 1, "--out": bool(out)} | outputs)
        return head_to_head(requests, arms, metric, as_json=as_json)
    if metric is not None:
        raise RefusedError("--metric needs --arms")
    if len(requests) > 1:
        _require_alone("a comparison", outputs)
        return side_by_side(requests, out, as_json=as_json)
    (request,) = requests
    if as_json:
        raise RefusedError("--json needs a comparison: --arms, another STUDY or another --home")
    if out is not None:
        _require_alone("--out", outputs)
    if cite:
        _require_alone("--cite", outputs | {"--cite": False})
        tell_sources(request.grown)
        return DONE
    if epochs is not None or predictions is not None:
        files = ((epochs, False), (predictions, True))
        codes = [write_rows(request, file, predictions=kind) for file, kind in files if file]
        return max(codes)
    return _write(request, out)


def _write(request: Request, out: Path | None) -> int:
    click.get_current_context().ensure_object(Ending).leaves_files = True
    request.require_stored()
    results = request.results()
    written = write_report(request, request.grown, results, out)
    if any(result.outcome == "missing" for result in results):
        request.say_elsewhere()
    click.echo(fitted_text(written.screen))
    return conclude(request, results, written)


def _write_site(home: Path, out: Path | None) -> int:
    """Write one static site with the reports of all studies of a home."""
    from reports.pages.html_pages import write_site

    if out is None:
        raise RefusedError("name a STUDY, or add --out FOLDER for one site with all reports")
    reports = home / "reports"
    entries = write_site(reports, out) if reports.is_dir() else ()
    if not entries:
        raise RefusedError(f"{reports} contains no report; `mixsweep run STUDY` writes one")
    reported = "1 report" if len(entries) == 1 else f"{len(entries)} reports"
    click.echo(f"{reported}  {out / 'index.html'}")
    return DONE


def _require_alone(subject: str, options: dict[str, bool]) -> None:
    """Check that options which do not go with another were not given."""
    if others := [name for name, is_given in options.items() if is_given]:
        raise RefusedError(f"{subject} cannot be used with {', '.join(others)}; remove one of them")


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
    metric = metric or sides[0].headline
    try:
        comparison = tables.head_to_head(sides[0], sides[1], metric)
    except ValueError as error:
        for request in requests:
            request.say_elsewhere()
        raise RefusedError(str(error)) from error
    if as_json:
        click.echo(json.dumps(comparison.record(), indent=2))
        return DONE
    for listing in comparison.listings():
        click.echo(fitted_text(listing.markdown()))
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
    for request, column in zip(requests, columns, strict=True):
        look(column.study, request.store, column.results)
    if out is not None:
        replace_files(out, joined.files(), is_own=holds_joined(out))
        click.echo(f"tables    {out / 'joined.md'}", err=True)
    if as_json:
        records = {listing.name: list(listing.records) for listing in joined.listings()}
        click.echo(json.dumps({"columns": list(joined.heads), **records}, indent=2))
    else:
        click.echo(fitted_text(joined.markdown()))
    missing = 0
    for request, (head, column) in zip(requests, joined.columns.items(), strict=True):
        lacking = [result for result in column.results if result.outcome != "complete"]
        missing += len(lacking)
        if lacking:
            num_runs = len(column.results)
            click.echo(f"{head}: {num_runs - len(lacking)}/{num_runs} runs are finished", err=True)
            request.say_elsewhere()
    return SOME_FAILED if missing else DONE


def _arm(name: str, requests: Sequence[Request]) -> tuple[Request, str]:
    """Find the study that has an arm; return the study and the name of the arm."""
    matches = [
        (request, arm)
        for request in requests
        for arm in request.grown.arms
        if name in {arm, f"{request.study.name}/{arm}"}
    ]
    if not matches:
        arms = "; ".join(f"{r.study.name} has {named(name, r.grown.arms)}" for r in requests)
        raise RefusedError(f"--arms: no arm is named {name!r}; {arms}")
    if len(matches) > 1:
        spelled = " or ".join(f"{request.study.name}/{arm}" for request, arm in matches)
        raise RefusedError(f"--arms {name!r}: several studies have this arm; write {spelled}")
    return matches[0]


_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_OF_DATA = {"fashion-mnist": "1708.07747"}
_OWN_ENTRY = """@software{{mixsweep,
  title = {{mixsweep: paired, resumable studies of mixup training}},
  author = {{{{The mixsweep authors}}}},
  version = {{{}}},
}}"""


def tell_sources(study: Study) -> None:
    """Print BibTeX entries for mixsweep and the papers that a study and its methods name.

    A paper whose BibTeX entry is not bundled is printed as its arXiv number.
    """
    text = files("sweeps.studies").joinpath("sources.bib").read_text(encoding="utf-8")
    entries = {
        eprint[1]: entry.removesuffix("}")
        for entry in re.findall(r"^@.*?^\}", text, re.MULTILINE | re.DOTALL)
        if (eprint := re.search(r"eprint = \{(.*?)\}", entry))
    }
    click.echo(_OWN_ENTRY.format(installed_version("mixsweep") or "unknown"))
    for number in works_of(study):
        head = entries.get(number, f"@misc{{arxiv-{number},\n  eprint = {{{number}}},\n")
        click.echo(f"\n{head}  archiveprefix = {{arXiv}},\n"
                   f"  url = {{https://arxiv.org/abs/{number}}},\n}}")  # fmt: skip


def works_of(study: Study) -> list[str]:
    """Return the arXiv numbers in a study file, then those of the classes and data of its arms."""
    numbers = _ARXIV.findall(study.source)
    for config in study.arms.values():
        for part in dataclasses_in(config):
            kind = type(part)
            texts = (kind.__doc__, getattr(sys.modules.get(kind.__module__), "__doc__", None))
            numbers += [number for text in texts for number in _ARXIV.findall(text or "")]
        if (data := study.problem.comparing.dataset(config)) in _OF_DATA:
            numbers.append(_OF_DATA[data])
    return list(dict.fromkeys(numbers))


def dataclasses_in(value: Any) -> Iterator[Any]:
    """Yield a configuration and the dataclasses below it."""
    if isinstance(value, tuple):
        for item in value:
            yield from dataclasses_in(item)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from dataclasses_in(getattr(value, field.name))
