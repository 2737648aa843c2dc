"""Conclusion: the report of a launch, its last lines, and the record that it is finished."""

import hashlib
import json
import platform
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

import mixup_core
from mixsweep.request import DONE, SOME_FAILED, Request
from mixup_core.rules import escaped
from mixup_core.store.errors import UnreadableError
from mixup_core.store.json_records import LARGEST
from mixup_core.store.local_files import read_regular, write_durably
from mixup_core.store.manifests import seal, unseal
from reports.numbers.code_origin import describe_code
from reports.numbers.provenance import installed_versions
from sweeps.machine.command_line import program
from sweeps.machine.databases import database_file
from sweeps.machine.terminal_text import COLUMNS, shortened
from sweeps.state.results import RunResult, ended_on_budget, read_predictions
from sweeps.state.statements import look, statements_of
from sweeps.study.study import Study

if TYPE_CHECKING:
    from reports.pages.build import Report

_MOST_UNFINISHED = 4
"""Largest number of unfinished runs that a command names."""


def write_report(
    request: Request, study: Study, results: Sequence[RunResult], out: Path | None
) -> "Report":
    """Write the report of a study to its folder; a report with other results is renamed first.

    A message then names both folders (see `reports.pages.report_folders`).
    """
    from reports.numbers.provenance import is_finished
    from reports.pages.build import draft_report
    from reports.pages.report_folders import room_for, spell_moved

    folder = out or request.home.report_of(request.study.name)
    finished = is_finished(study, results, request.history)
    draft = draft_report(
        study,
        results,
        data_checksums=request.data_checksums(),
        command=request.command,
        history=request.history,
        predictions=partial(read_predictions, store=request.store),
        pages=None if request.home.tracking else _pages(request),
        statements=statements_of(study, request.store),
    )
    look(study, request.store, results)
    room = room_for(folder, study, results, is_finished=finished, predicted=draft.predicted)
    # Order matters: delete an outdated report once the new one is written. A full disk would leave
    # neither; tests/reports/pages/test_report_folders.py fails.
    room.make()
    report = draft.write(folder)
    room.clear()
    if message := spell_moved(room, study):
        click.echo(message, err=True)
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
    ended = ended_on_budget(request.study, results)
    for subject, reason in (("search", request.history.ended), ("study", ended)):
        if reason is not None:
            click.echo(_line(f"{request.study.name}: the {subject} {reason}"), err=True)
    unfinished = [result for result in results if result.outcome != "complete"]
    for result in unfinished[:_MOST_UNFINISHED]:
        reason = result.failure.message if result.failure else "not trained yet"
        text = f"{result.run.arm} seed {result.run.seed} {result.outcome}: {reason}"
        click.echo(_line(text), err=True)
    if (more := len(unfinished) - _MOST_UNFINISHED) > 0:
        click.echo(f"... {more} more runs are not complete; see the report", err=True)
    click.echo(f"report    {report.folder / 'report.html'}", err=True)
    tracked = request.home.shown_tracking if request.home.tracking else _pages(request)
    click.echo(f"tracking  {tracked}", err=True)
    if ended is None and any(result.outcome != "diverged" for result in unfinished):
        engine = " --engine inline" if is_inline else ""
        click.echo(f"next      {request.spell('run')}{engine}", err=True)
    return SOME_FAILED if unfinished else DONE


_PACKAGES = ("mixup_core", "sweeps", "reports", "mixsweep")
_SOURCES = {".py", ".yaml", ".html"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Conclusion:
    """The recorded report of a finished study: its folder and its text."""

    folder: Path
    screen: str
    """Text of the report for the terminal."""


def keep(request: Request, results: Sequence[RunResult], report: "Report") -> None:
    """Record in a file that a study is finished, so that its next launch ends at once.

    If the study is not finished, an earlier file is deleted.
    """
    file = _file(request)
    evidence = _evidence(request, results, report.folder)
    with suppress(IsADirectoryError):  # a folder in its place: no conclusion is kept
        if evidence is None:
            file.unlink(missing_ok=True)
            return
        content = {"folder": report.folder.name, "screen": report.screen}
        write_durably(file, seal({"evidence": evidence, **content}))


def recall(request: Request, results: Sequence[RunResult]) -> Conclusion | None:
    """Return the recorded report of a finished study, if nothing has changed since."""
    try:
        content = unseal(read_regular(_file(request), LARGEST))
        if content is None:
            return None
        folder = _file(request).with_name(content["folder"])
        if content["evidence"] != _evidence(request, results, folder):
            return None
        return Conclusion(folder=folder, screen=str(content["screen"]))
    except (OSError, UnreadableError, ValueError, KeyError, TypeError):
        return None  # missing or damaged: the launch writes it again


def _file(request: Request) -> Path:
    name = request.study.name
    return request.home.report_of(name).with_name(f".{name}.conclusion.json")


def _evidence(request: Request, results: Sequence[RunResult], folder: Path) -> str | None:
    """Return one sha256 over code, study, results and report; None if a part is missing."""
    database = database_file(request.home.tracking_uri)
    is_over = all(result.outcome in {"complete", "diverged"} for result in results)
    if database is None or not database.is_file() or request.study.search or not is_over:
        return None
    digest = hashlib.sha256()
    for part in _parts(request, results, folder):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _parts(request: Request, results: Sequence[RunResult], folder: Path) -> Iterator[bytes]:
    """Yield every input; a finished study is checked again if one of them has changed."""
    source = Path(mixup_core.__file__).parents[1]
    versions = [platform.python_version(), installed_versions(), describe_code()]
    yield json.dumps(versions, sort_keys=True).encode()
    for package in _PACKAGES:
        files = (source / package).rglob("*")
        yield from _contents(source, (file for file in files if file.suffix in _SOURCES))
    home = request.home
    places = (home.store, home.tracking_uri, home.artifact_location, str(folder.resolve()))
    yield repr((request.study, places, request.data_checksums())).encode()
    for result in results:
        yield repr((result.run.key, result.stage, result.failure)).encode()
    yield repr(statements_of(request.study, request.store)).encode()
    yield from _contents(folder, folder.rglob("*"))


def _contents(folder: Path, files: Iterator[Path]) -> Iterator[bytes]:
    for file in sorted(files):
        if file.is_file():
            yield str(file.relative_to(folder)).encode()
            yield file.read_bytes()
