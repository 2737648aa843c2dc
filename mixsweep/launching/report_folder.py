"""Report folder: writes the report of a study, and prints what a command says of it at its end."""

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mixsweep.request import DONE, SOME_FAILED, Request
from mixup_core.rules import escaped
from sweeps.machine.command_line import program
from sweeps.machine.terminal_text import COLUMNS, shortened
from sweeps.state.results import RunResult, ended_on_budget, read_predictions
from sweeps.state.statements import look, statements_of
from sweeps.study.study import Study

if TYPE_CHECKING:
    from mixsweep.launching.conclusion import Conclusion
    from reports.pages.build import Report


_MOST_UNFINISHED = 4
"""Largest number of unfinished runs that a command names."""


def write_report(
    request: Request,
    study: Study,
    results: Sequence[RunResult],
    out: Path | None,
) -> "Report":
    """Write the report of a study to its folder; a report with other results is renamed first.

    A message then names both folders (see `reports.pages.report_folders`).
    """
    from reports.numbers.provenance import is_finished
    from reports.pages.build import draft_report
    from reports.pages.report_folders import room_for, spell_moved

    folder = out or request.home.report_of(request.study.name)
    finished = is_finished(study, results, request.history)
    statements = statements_of(study, request.store)
    draft = draft_report(
        study,
        results,
        data_checksums=request.data_checksums(),
        command=request.command,
        history=request.history,
        predictions=partial(read_predictions, store=request.store),
        pages=None if request.home.tracking else _pages(request),
        statements=statements,
    )
    look(study, request.store, results)
    room = room_for(folder, study, results, is_finished=finished, predicted=draft.predicted)
    room.make()
    report = draft.write(folder)
    room.clear()
    if said := spell_moved(room, study):
        click.echo(said, err=True)
    return report


def _pages(request: Request) -> str:
    home = shlex.quote(str(request.home.folder))
    return f"{program()} ui {request.study.name} --home {home}"


def _line(text: str) -> str:
    """Return a text as one line of at most 100 columns; the report has all of it."""
    return shortened(escaped(" ".join(text.split())), COLUMNS)


def conclude(
    request: Request,
    results: Sequence[RunResult],
    report: "Report | Conclusion",
    *,
    is_inline: bool = False,
) -> int:
    """Print a command's last lines: unfinished runs, report, next step; return the exit code."""
    for reason in (request.history.ended, ended_on_budget(request.study, results)):
        if reason is not None:
            what = "search" if reason is request.history.ended else "study"
            click.echo(_line(f"{request.study.name}: the {what} {reason}"), err=True)
    unfinished = [result for result in results if result.outcome != "complete"]
    for result in unfinished[:_MOST_UNFINISHED]:
        reason = result.failure.message if result.failure else "not trained yet"
        told = f"{result.run.arm} seed {result.run.seed} {result.outcome}: {reason}"
        click.echo(_line(told), err=True)
    if (more := len(unfinished) - _MOST_UNFINISHED) > 0:
        click.echo(f"... {more} more runs are not complete; see the report", err=True)
    click.echo(f"report    {report.folder / 'report.html'}", err=True)
    tracked = request.home.shown_tracking if request.home.tracking else _pages(request)
    click.echo(f"tracking  {tracked}", err=True)
    if any(result.outcome != "diverged" for result in unfinished):
        engine = " --engine inline" if is_inline else ""
        click.echo(f"next      {request.spell('run')}{engine}", err=True)
    return SOME_FAILED if unfinished else DONE
