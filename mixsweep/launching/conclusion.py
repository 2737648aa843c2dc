"""Conclusion: a record that a study is finished, so that the next `mixsweep run` ends at once.

    reports/.STUDY.conclusion.json      beside the study's report

The file contains a sha256 over the code, the resolved study, every result in the store, the records
of its claims, and the files of the report. A second sha256 covers the file itself. If any byte has
changed, or MLflow's database is gone, the conclusion is ignored. Two kinds of studies have none:
searches, because their storage may have new points, and studies whose MLflow is a server.
"""

import hashlib
import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import mixup_core
from mixsweep.request import Request
from mixup_core.store.errors import UnreadableError
from mixup_core.store.json_records import LARGEST
from mixup_core.store.local_files import read_regular, write_durably
from mixup_core.store.manifests import seal, unseal
from reports.numbers.code_origin import describe_code
from reports.numbers.provenance import installed_versions
from sweeps.machine.databases import database_file
from sweeps.state.results import RunResult
from sweeps.state.statements import statements_of

if TYPE_CHECKING:
    from reports.pages.build import Report

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
        content = {
            "evidence": evidence,
            "folder": report.folder.name,
            "screen": report.screen,
        }
        write_durably(file, seal(content))


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
    """Yield everything after whose change a finished study is checked again."""
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
