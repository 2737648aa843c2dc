"""report: tables, figures and provenance of what is stored."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sweeps.commands.request import DONE, SOME_FAILED, Request, command_line, on_study
from sweeps.results import RunResult
from sweeps.study import Study

if TYPE_CHECKING:
    from reports.build import Report
    from sweeps.commands.conclusion import Conclusion


@click.command()
@on_study
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to; default: reports/STUDY in the home.",
)
def report(request: Request, out: Path | None) -> int:
    """Write tables, figures and provenance of what is stored."""
    results = request.results()
    written = write_report(request, request.grown, results, out)
    click.echo(written.markdown)
    return conclude(request, results, written)


def write_report(
    request: Request, study: Study, results: Sequence[RunResult], out: Path | None
) -> "Report":
    """Write the report of a study from some results; without `out`, in its home."""
    from reports.build import build_report

    return build_report(
        study,
        results,
        out or request.home.report_of(request.study.name),
        data_checksums=request.data_checksums(),
        command=command_line(),
        history=request.history,
    )


def conclude(request: Request, results: Sequence[RunResult], report: "Report | Conclusion") -> int:
    """Say what failed and what to type next."""
    if request.history.ended is not None:
        click.echo(f"{request.study.name}: the search {request.history.ended}", err=True)
    unfinished = [result for result in results if result.outcome != "complete"]
    for result in unfinished:
        reason = result.failure.message if result.failure else "not trained yet"
        click.echo(f"{result.run.arm} seed {result.run.seed} {result.outcome}: {reason}", err=True)
    click.echo(f"report    {report.folder / 'report.html'}", err=True)
    place = f"mixsweep ui --home {shlex.quote(str(request.home.folder))}"
    click.echo(f"tracking  {request.home.tracking_server or place}", err=True)
    if any(result.outcome != "diverged" for result in unfinished):
        click.echo(f"next      {request.spell('run')}", err=True)
    return SOME_FAILED if unfinished else DONE
