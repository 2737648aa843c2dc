"""report: write the report of a study, or compare, export and cite stored results."""

from collections.abc import Sequence
from pathlib import Path

import click

from mixsweep.cli.comparison import head_to_head, places_of, side_by_side
from mixsweep.cli.ending import Ending
from mixsweep.cli.epochs_file import write_rows
from mixsweep.cli.options import (
    LocalPath,
    StudyCommand,
    json_option,
    plugin_option,
    set_option,
    without_secret,
)
from mixsweep.cli.recorded_line import command_line
from mixsweep.cli.sources import tell_sources
from mixsweep.launching.report_folder import conclude, write_report
from mixsweep.request import DONE, RefusedError, Request
from mixup_core.addresses import store_address
from sweeps.machine.command_line import STORE


@click.command(cls=StudyCommand)
@click.argument("studies", nargs=-1, required=True, metavar="STUDY [OTHER...]")
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
    help="Folder to write to; default: reports/STUDY in the home. A comparison of studies is "
    "written only with --out; one of arms is always printed.",
)
@click.option(
    "--arms",
    nargs=2,
    metavar="A B",
    help="Print a comparison of two arms, paired by seed; write STUDY/ARM if several studies have "
    "an arm of that name.",
)
@click.option(
    "--metric", help="Metric by which --arms compares; default: headline metric of the study."
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
    compares two arms. A finished report is never replaced by an unfinished one. Exit code 1 if runs
    are missing.
    """
    places, line = places_of(homes, stores), command_line()
    requests = [
        Request.read(
            reference, overrides, home=home, plugins=plugins, command=line, reads_only=True
        )
        for reference in dict.fromkeys(studies)
        for home in places
    ]
    given = {"--epochs": bool(epochs), "--predictions": bool(predictions), "--cite": cite}
    if arms is not None:
        _require_alone("--arms", {"several --home": len(places) > 1, "--out": bool(out)} | given)
        return head_to_head(requests, arms, metric, as_json=as_json)
    if metric is not None:
        raise RefusedError("--metric needs --arms")
    if len(requests) > 1:
        _require_alone("a comparison", given)
        return side_by_side(requests, out, as_json=as_json)
    (request,) = requests
    if as_json:
        raise RefusedError("--json needs a comparison: --arms, another STUDY or another --home")
    if out is not None:
        _require_alone("--out", given)
    if cite:
        _require_alone("--cite", given | {"--cite": False})
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
    click.echo(written.screen)
    return conclude(request, results, written)


def _require_alone(what: str, given: dict[str, bool]) -> None:
    """Check that options which do not go with another were not given."""
    if others := [name for name, is_given in given.items() if is_given]:
        raise RefusedError(f"{what} cannot be used with {', '.join(others)}; remove one of them")
