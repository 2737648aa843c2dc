"""Archives: a study packed into one zip file, to copy it to another home.

SHA256SUMS                    checksums of all other files, in the format of `sha256sum`
launch.json  data/*.json      the study as launched; class and image names of its image folders
store/...                     records, predictions, failures and statements, as in a store
report/...                    the report, for readers without mixsweep
"""

import dataclasses
import errno
import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from mixup_core.problem import KnownData
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from mixup_core.store.notes import filled, parse_note
from mixup_core.temporary import temporary_folder
from sweeps.state.ledger import Launch, is_printable
from sweeps.state.passing import OWNER
from sweeps.state.results import RunResult
from sweeps.state.statements import copy_statements

SUMS = "SHA256SUMS"
_NAME = re.compile(r"(launch\.json|(data|store|report)(/[A-Za-z0-9_-][A-Za-z0-9._@-]*){1,4})")
_STUDY = re.compile(r"[a-z0-9-]{1,100}/[0-9a-f]{32}")
_MOST_BYTES = 2**36
"""Largest total size of an unpacked archive, in bytes. The predictions of 10,000 runs of ImageNet
take half of it."""
_MOST_GROWTH, _SMALL = 200, 2**26
"""An archive may unpack to at most `_SMALL` bytes plus `_MOST_GROWTH` times its own size: records
compress to a thirtieth, predictions hardly."""
_LARGEST_NOTE = 2**28
"""Largest file of an archive that is read into memory at once, in bytes."""
_CHUNK = 2**20
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, KeyError, RuntimeError)
"""Types of errors that reading a damaged or password-protected archive raises."""
_NAMED_BY_DAMAGE = {None, errno.EINVAL, errno.EEXIST, errno.ENOTDIR, errno.EISDIR}
"""System error numbers that impossible file names or offsets in a damaged archive cause."""


class StudyArchiveError(Exception):
    """The file is not an archive of a study, or it was damaged or changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Added:
    """Result of adding an archive to a store: how many of its runs were new to the store."""

    facts: Mapping[str, Mapping[str, Any]]
    """Facts about the archive's datasets, such as names of classes, by digest of the data."""
    new: int
    """Number of runs that were added, because their last stage was not in the store."""
    known: int
    """Number of runs that were already in the store with the same records."""
    other: tuple[str, ...]
    """Last stage keys of runs that were already in the store with different records; the store
    keeps its own records of them."""


def write_archive(  # noqa: PLR0913  the parts of an archive
    file: Path,
    launch: Launch,
    known: KnownData,
    results: Sequence[RunResult],
    store: Store,
    report: Path | None,
) -> tuple[int, int]:
    """Write a study to one zip file; return the number of runs in it and its size in bytes.

    Args:
        file: The zip file to write. It appears only when complete, and replaces an existing one.
        launch: The study as it was launched.
        known: Facts of the study's image folders, such as their classes, as recorded in the store.
        results: Results of the study's runs. The last stage of each run is written, without its
            state (weights).
        store: The store of the results.
        report: Folder of the report; None to write no report.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(file.parent, f".{file.name}.") as folder:
        content = folder / "content"
        copy = Store(str(content / "store"))
        digests = {v for c in launch.arms.values() for p, v in c.items() if p.endswith(".digest")}
        notes = {"launch.json": dataclasses.asdict(launch)} | {
            f"data/{digest}.json": dict(note)
            for digest, note in known.facts.items()
            if digest in digests
        }
        for name, note in notes.items():
            (content / name).parent.mkdir(parents=True, exist_ok=True)
            (content / name).write_text(json.dumps(note))
        num_runs = sum(_copied(result, store, copy) for result in results)
        copy_statements(launch.study, store, copy)
        paths = {path.relative_to(content).as_posix(): path for path in content.rglob("*")}
        if report is not None:
            paths |= {
                f"report/{path.relative_to(report).as_posix()}": path
                for path in report.rglob("*")
                if not any(part.startswith(".") for part in path.relative_to(report).parts)
            }
        files = {n: p for n, p in sorted(paths.items()) if p.is_file() and _NAME.fullmatch(n)}
        sums = "".join(f"{_sha256(path)}  {name}\n" for name, path in files.items())
        unfinished = folder / file.name
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo(SUMS), sums)
            for name, path in files.items():
                archive.write(path, name)
        unfinished.replace(file)
    return num_runs, file.stat().st_size


def add_unpacked(folder: Path, study: str, store: Store, report: Path) -> Added:
    """Add the runs of an unpacked archive to a store; existing content is not changed.

    The caller must hold the lease of the study.

    Args:
        folder: The folder that `unpack` has filled.
        study: Name of the study.
        store: The store to add the runs to.
        report: Folder to write the report to; nothing is written if it exists.
    """
    source = Store(str(folder / "store"))
    new, known, other = 0, 0, []
    for stage in source.stages():
        before = store.read(stage.key)
        # A longer run that has stored this stage only to resume from may delete it even now.
        while OWNER in (stored := _write(stage, store)).environment:
            store.forget(stage.key, OWNER)
        if stored.records != stage.records:
            other.append(stage.key)
            continue
        new, known = new + (before is None), known + (before is not None)
        predictions = source.predictions.read(stage.key, stage.records[-1])
        if predictions is not None:
            store.predictions.write(stage.key, stage.records[-1], predictions)
    failed = store.failures.read_all()
    for key, failure in source.failures.read_all().items():
        if key not in failed:
            store.failures.write(failure)
    copy_statements(study, source, store)
    if (folder / "report").exists() and not report.exists():
        report.parent.mkdir(parents=True, exist_ok=True)
        for path in (folder / "report").rglob("*"):
            if path.is_file():
                place = report / path.relative_to(folder / "report")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(path.read_bytes())
    notes = {path.stem: parse_note(path.read_bytes()) for path in (folder / "data").glob("*.json")}
    facts = {digest: note for digest, note in notes.items() if note is not None}
    return Added(facts=facts, new=new, known=known, other=tuple(other))


def unpack(file: Path, folder: Path) -> Launch:
    """Check every byte of an archive, unpack it, and return the launch recorded in it.

    Args:
        file: The archive.
        folder: Folder into which the files are unpacked.

    Raises:
        StudyArchiveError: If a file of the archive is missing, is not in the list of checksums, or
            does not match its checksum.
        OSError: If the archive cannot be read, or the folder cannot be written.
    """
    launch = _launch_in(file)
    with zipfile.ZipFile(file) as archive:
        members = {member.filename: member for member in archive.infolist()}
        if len(members) != len(archive.infolist()) or SUMS not in members:
            raise StudyArchiveError(
                f"{file}: this zip file is not an archive of a study: {SUMS} is missing from it, "
                "or a file occurs twice"
            )
        size = sum(member.file_size for member in members.values())
        most = min(_MOST_BYTES, _SMALL + _MOST_GROWTH * file.stat().st_size)
        if size > most:
            raise StudyArchiveError(
                f"{file}: unpacks to {size:,} bytes, more than {most:,}, the largest allowed size; "
                "archives from `mixsweep share` are smaller, so get the archive again"
            )
        try:
            lines = _read(archive, members.pop(SUMS)).decode().splitlines()
            sums = {name: of_file for of_file, _, name in (line.partition("  ") for line in lines)}
            if sums.keys() != members.keys():
                odd = sorted(sums.keys() ^ members.keys())
                raise StudyArchiveError(
                    f"{file}: {odd[0]!r} is in the archive or in its list {SUMS}, but not in both; "
                    "get the archive again"
                )
            for name, member in members.items():
                if not _NAME.fullmatch(name) or ".." in PurePosixPath(name).parts:
                    raise StudyArchiveError(
                        f"{file}: the file {name!r} does not belong in an archive of a study"
                    )
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with (folder / name).open("xb") as out:
                    digest = _copy(archive, member, out)
                if digest != sums[name]:
                    raise StudyArchiveError(
                        f"{file}: {name} is damaged (wrong sha256); get the archive again"
                    )
        except (*_DAMAGES, OSError) as error:
            if isinstance(error, OSError) and error.errno not in _NAMED_BY_DAMAGE:
                raise
            raise StudyArchiveError(
                f"{file}: the archive is damaged ({error}); get it again"
            ) from error
    return launch


def _launch_in(file: Path) -> Launch:
    """Return the launch recorded in an archive, without reading its other files.

    Raises:
        StudyArchiveError: If the file is not an archive of a study.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            found = filled(Launch, parse_note(_read(archive, archive.getinfo("launch.json"))))
    except (*_DAMAGES, OSError) as error:
        raise StudyArchiveError(f"{file}: not an archive of a study ({error})") from error
    is_named = found is not None and _STUDY.fullmatch(f"{found.study}/{found.settings}")
    if found is None or not is_named or not found.source or not is_printable(found):
        raise StudyArchiveError(f"{file}: its file launch.json does not describe a study")
    return found


def _copied(result: RunResult, store: Store, copy: Store) -> bool:
    """Copy the last stage of a run, its predictions and its failure; return True if it has a stage.

    Args:
        result: The run.
        store: The store to copy from.
        copy: The store to copy to.
    """
    stage = result.stage
    if result.failure is not None and result.outcome in {"failed", "diverged"}:
        copy.failures.write(result.failure)
    if stage is None:
        return False
    _write(stage, copy)
    predictions = store.predictions.read(stage.key, stage.records[-1])
    if predictions is not None:
        copy.predictions.write(stage.key, stage.records[-1], predictions)
    return True


def _write(stage: Stage, store: Store) -> Stage:
    """Write a stage to a store, to stay there and without its state; return the stored stage."""
    environment = {name: value for name, value in stage.environment.items() if name != OWNER}
    return store.write(
        stage.key, records=stage.records, facts=stage.facts, environment=environment, state=None
    )


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the content of one file of an archive.

    Raises:
        StudyArchiveError: If the file is too large to read into memory.
    """
    if member.file_size > _LARGEST_NOTE:
        raise StudyArchiveError(
            f"{archive.filename}: its file {member.filename!r} has {member.file_size:,} bytes, "
            f"more than {_LARGEST_NOTE:,}, the largest allowed size"
        )
    content = io.BytesIO()
    _copy(archive, member, content)
    return content.getvalue()


def _copy(archive: zipfile.ZipFile, member: zipfile.ZipInfo, out: IO[bytes]) -> str:
    """Write one file of an archive to a stream, up to its stated size; return its sha256.

    Raises:
        StudyArchiveError: If the file is larger than stated, or has an unexpected compression.
    """
    if member.compress_type not in _COMPRESSIONS:
        raise StudyArchiveError(
            f"{archive.filename}: its file {member.filename!r} is compressed by a method (number "
            f"{member.compress_type}) that is not supported"
        )
    digest, left = hashlib.sha256(), member.file_size
    with archive.open(member) as stream:
        while content := stream.read(_CHUNK):
            left -= len(content)
            if left < 0:
                raise StudyArchiveError(
                    f"{archive.filename}: its file {member.filename!r} is larger than the zip "
                    "directory says"
                )
            digest.update(content)
            out.write(content)
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
