"""Archives: a study packed into one zip file, to copy its runs to another home.

SHA256SUMS                         checksums of all other files, in the format of `sha256sum`
launch.json                        the study as launched
data/DIGEST.json                   class and image names of its image folders
store/stages/, predictions/        the last stage of each run, and predictions, as in a store
store/studies/STUDY/statements.json    when its claims were stated

The checksums detect accidents. They do not prove who wrote an archive, so only its study is
trusted: keys are computed from it again, only stages of its runs are added, and they are marked as
added.
"""

import dataclasses
import errno
import hashlib
import io
import json
import re
import time
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from mixup_core.config.written_forms import flatten
from mixup_core.keys import stage_keys
from mixup_core.problem import KnownData, Metric, Problem, spell_odd_name
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import naming
from mixup_core.store.json_records import RecordError, parse_note, record_of
from mixup_core.store.local_files import open_regular, read_regular
from mixup_core.store.manifests import ADDED, STUDY_NAME, FormatError, Stage
from mixup_core.store.sealed_files import record_in
from mixup_core.temporary import temporary_folder
from sweeps.state.ledger import Launch, digests_in, is_printable
from sweeps.state.results import Addition, RunResult, parsed_predictions
from sweeps.state.stages import OWNER
from sweeps.state.statements import Statement, stated_in, write_statements
from sweeps.study.study import Study

SUMS = "SHA256SUMS"
# Frozen: names of the files in an archive. Archives of earlier versions would be refused;
# tests/mixsweep/cli/test_foreign_archives.py fails.
_NAME = re.compile(
    r"launch\.json|data/[0-9a-f]{64}\.json|store/stages/[0-9a-f]{2}/[0-9a-f]{4,64}\.json"
    r"|store/predictions/[0-9a-f]{2}/[0-9a-f]{4,64}\.bin"
    rf"|store/studies/{STUDY_NAME}/statements\.json"
)
_LARGEST = 1e100
"""Largest size of a value of a metric. Sums of squares of larger ones are infinite, which reports
cannot show; the square of the largest number of training, a float32, is 1e77."""
_STUDY = re.compile(rf"{STUDY_NAME}/[0-9a-f]{{32}}")
_MOST_BYTES = 2**36
"""Largest total size of an unpacked archive, in bytes. The predictions of 10,000 runs of ImageNet
take half of it."""
_MOST_GROWTH, _SMALL = 200, 2**26
"""An archive may unpack to at most `_SMALL` bytes plus `_MOST_GROWTH` times its own size: records
compress to a thirtieth, predictions hardly."""
_CHUNK = 2**20
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, KeyError, RuntimeError)
"""Types of errors that reading a damaged or password-protected archive raises."""
_NAMED_BY_DAMAGE = {None, errno.EINVAL, errno.EEXIST, errno.ENOTDIR, errno.EISDIR}
"""System error numbers that impossible file names or offsets in a damaged archive cause."""


class StudyArchiveError(Exception):
    """The file is not an archive of a study, or it was damaged or changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """An unpacked archive, whose files match their checksums; their content is not checked yet."""

    file: Path
    folder: Path
    """Folder that contains the unpacked files."""
    sha256: str
    launch: Launch
    """The launch of the study, as the archive describes it."""

    def known(self, study: str = "") -> KnownData:
        """Return the facts about image folders with which the study of the archive is read."""
        del study
        files = {path.stem: path for path in (self.folder / "data").glob("*.json")}
        notes = {digest: parse_note(path.read_bytes()) for digest, path in files.items()}
        facts = {digest: note for digest, note in notes.items() if note is not None}
        return KnownData(configs=tuple(self.launch.arms.values()), facts=facts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Brought:
    """The checked content of an archive: the runs of one study, and nothing else."""

    launch: Launch
    """Record of the study, whose keys were computed again from the study."""
    facts: Mapping[str, Mapping[str, Any]]
    """Facts about the study's image folders, by digest."""
    stages: tuple[Stage, ...]
    """Stored epochs of runs of the study."""
    statements: Mapping[str, Statement]
    source: Store
    """The store in the unpacked archive, for the predictions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Added:
    """Result of adding an archive to a store: how many of its runs were new to the store."""

    new: int
    """Number of runs that were added, because their last stage was not in the store."""
    known: int
    """Number of runs that were already in the store with the same records."""
    other: tuple[str, ...]
    """Last stage keys of runs that were already in the store with different records; the store
    keeps its own records of them."""


def is_archive(file: Path) -> bool:
    """Return whether a regular file begins like an archive that this module wrote."""
    head = read_regular(file, 64)
    return head.startswith(b"PK\x03\x04") and head[30:].startswith(SUMS.encode())


def write_archive(
    file: Path, launch: Launch, known: KnownData, results: Sequence[RunResult], store: Store
) -> int:
    """Write a study to one new zip file; return the number of runs in it."""
    with temporary_folder(file.parent) as content:
        copy = Store(str(content / "store"))
        digests = digests_in(launch.arms.values())
        notes = {"launch.json": dataclasses.asdict(launch)} | {
            f"data/{digest}.json": dict(note)
            for digest, note in known.facts.items()
            if digest in digests
        }
        for name, note in notes.items():
            (content / name).parent.mkdir(parents=True, exist_ok=True)
            (content / name).write_text(json.dumps(note))
        num_runs = sum(_copied(result, store, copy) for result in results)
        write_statements(launch.study, copy, stated_in(launch.study, store))
        paths = {path.relative_to(content).as_posix(): path for path in content.rglob("*")}
        files = {name: path for name, path in sorted(paths.items()) if _NAME.fullmatch(name)}
        sums = "".join(f"{_sha256(path)}  {name}\n" for name, path in files.items())
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo(SUMS), sums)
            for name, path in files.items():
                archive.write(path, name)
    return num_runs


def content_of(archive: Archive, study: Study) -> Brought:
    """Check the content of an archive against the study that it states; write nothing."""
    launch = archive.launch
    for field, stated, actual in (
        ("name", launch.study, study.name),
        ("settings", launch.settings, study.settings),
    ):
        if stated != actual:
            raise StudyArchiveError(
                f"{archive.file}: its launch.json has the {field} {stated}, but its study has the "
                f"{field} {actual}; another version of mixsweep or of a plugin may have written it"
            )
    lengths = {
        key: epochs for run in study.runs() for epochs, key in enumerate(stage_keys(run.config), 1)
    }
    source = Store(str(archive.folder / "store"))
    names = sorted(source.files.names("stages"))
    stages = {
        Path(name).stem: _stage(archive, name, source, lengths, study.problem) for name in names
    }
    for name in source.files.names("predictions"):
        key = Path(name).stem
        content = key in stages and source.predictions.read(key, stages[key].records[-1])
        if not content or parsed_predictions(content) is None:
            raise StudyArchiveError(
                f"{archive.file}: store/{name}: is damaged, or does not belong to its stage"
            )
    digests = digests_in(map(flatten, study.arms.values()))
    return Brought(
        launch=dataclasses.replace(
            Launch.of(study, launch.command, launch.at_ms), archive=archive.sha256
        ),
        facts={d: note for d, note in archive.known().facts.items() if d in digests},
        stages=tuple(stages.values()),
        statements=_statements(archive, source),
        source=source,
    )


def add_content(brought: Brought, store: Store, by: str) -> Added:
    """Add the runs of an archive to a store, marked; the caller holds the lease of the study."""
    new, known, different = 0, 0, []
    now_ms = time.time_ns() // 1_000_000
    mark = str(Addition(archive=brought.launch.archive, at_ms=now_ms, by=by))
    for stage in brought.stages:
        before = store.read(stage.key)
        # A longer run that has stored this stage only to resume from may delete it even now.
        while OWNER in (stored := _write(stage, store, {ADDED: mark})).environment:
            store.forget(stage.key, OWNER)
        if stored.records != stage.records:
            different.append(stage.key)
            continue
        new, known = new + (before is None), known + (before is not None)
        if ADDED not in stored.environment:
            continue  # predictions would count as made here
        predictions = brought.source.predictions.read(stage.key, stage.records[-1])
        if predictions is not None:
            store.predictions.write(stage.key, stage.records[-1], predictions)
    if not stated_in(brought.launch.study, store):
        write_statements(brought.launch.study, store, brought.statements)
    return Added(new=new, known=known, other=tuple(different))


def _stage(
    archive: Archive, name: str, source: Store, lengths: Mapping[str, int], problem: Problem
) -> Stage:
    key = Path(name).stem
    place = f"{archive.file}: store/{name}"
    if key not in lengths:
        raise StudyArchiveError(f"{place}: belongs to no run of its study; nothing was added")
    try:
        stage = record_in(Stage, name, source.files.read(name), key)
    except (RecordError, FormatError) as error:
        raise StudyArchiveError(f"{place}: {error}") from error
    if stage.epochs != lengths[key]:
        raise StudyArchiveError(
            f"{place}: has {stage.epochs} epochs, but this key is that of {lengths[key]}"
        )
    for noun, names in (("metric", stage.records.names), ("fact", stage.environment)):
        if odd := spell_odd_name(noun, names):
            raise StudyArchiveError(f"{place}: {odd}")
    metrics = {name: _usable(problem.metric(name)) for name in stage.records.names}
    for record in stage.records:
        for name, value in record.metrics.items():
            if not metrics[name].allows(value):
                least, most = metrics[name].bounds
                raise StudyArchiveError(
                    f"{place}: {name} must be in [{least:g}, {most:g}], got (value={value}, "
                    f"epoch={record.epoch})"
                )
    return stage


def _usable(metric: Metric) -> Metric:
    """Return a metric with the bounds that reports rely on.

    A single bound serves claims only, and the loss of a plugin may be below that of `train/loss`.
    """
    if max(map(abs, metric.bounds)) <= _LARGEST:
        return metric
    return dataclasses.replace(metric, least=-_LARGEST, most=_LARGEST)


def _statements(archive: Archive, source: Store) -> Mapping[str, Statement]:
    """Return the records of claims in an archive, marked as its own."""
    statements = {}
    own_name = f"studies/{archive.launch.study}/statements.json"
    for name in source.files.names("studies"):
        place = f"{archive.file}: store/{name}"
        if name != own_name:
            raise StudyArchiveError(f"{place}: belongs to another study")
        for key, plain in (parse_note(source.files.read(name)) or {}).items():
            try:
                statement = record_of(Statement, plain)
            except RecordError as error:
                raise StudyArchiveError(f"{place}: {error}") from error
            statements[key] = dataclasses.replace(statement, archive=archive.sha256)
    return statements


def unpack(file: Path, folder: Path) -> Archive:
    """Check every byte of an archive and unpack it."""
    with naming(file), open_regular(file) as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        try:
            with zipfile.ZipFile(stream) as archive:
                _unpack(file, archive, folder, stream.seek(0, io.SEEK_END))
        except (*_DAMAGES, OSError) as error:
            if isinstance(error, OSError) and error.errno not in _NAMED_BY_DAMAGE:
                raise
            raise StudyArchiveError(
                f"{file}: not an archive of a study, or damaged ({error}); get it again"
            ) from error
    try:
        launch = record_of(Launch, parse_note((folder / "launch.json").read_bytes()))
    except (OSError, RecordError) as error:
        raise StudyArchiveError(
            f"{file}: its file launch.json does not describe a study ({error})"
        ) from error
    is_named = _STUDY.fullmatch(f"{launch.study}/{launch.settings}")
    if not is_named or not launch.source or not is_printable(launch):
        raise StudyArchiveError(f"{file}: its file launch.json does not describe a study")
    return Archive(file=file, folder=folder, sha256=sha256, launch=launch)


def _unpack(file: Path, archive: zipfile.ZipFile, folder: Path, packed: int) -> None:
    """Unpack an archive whose size is given; raise StudyArchiveError for odd or damaged files."""
    members = {member.filename: member for member in archive.infolist()}
    if len(members) != len(archive.infolist()) or SUMS not in members:
        raise StudyArchiveError(
            f"{file}: this zip file is not an archive of a study: {SUMS} is missing from it, "
            "or a file occurs twice"
        )
    size = sum(member.file_size for member in members.values())
    most = min(_MOST_BYTES, _SMALL + _MOST_GROWTH * packed)
    if size > most:
        raise StudyArchiveError(
            f"{file}: unpacks to {size:,} bytes, more than {most:,}, the largest allowed size; "
            "archives from `mixsweep share` are smaller, so get the archive again"
        )
    _copy(archive, members.pop(SUMS), listed := io.BytesIO())
    lines = listed.getvalue().decode().splitlines()
    sums = {name: of_file for of_file, _, name in (line.partition("  ") for line in lines)}
    if sums.keys() != members.keys():
        odd = sorted(sums.keys() ^ members.keys())
        raise StudyArchiveError(
            f"{file}: {odd[0]!r} is in the archive or in its list {SUMS}, but not in both; "
            "get the archive again"
        )
    for name, member in members.items():
        if not _NAME.fullmatch(name):
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


def _copied(result: RunResult, store: Store, copy: Store) -> bool:
    """Copy the last stage of a run and its predictions; return True if it has a stage."""
    stage = result.stage
    if stage is None:
        return False
    _write(stage, copy)
    predictions = store.predictions.read(stage.key, stage.records[-1])
    if predictions is not None and parsed_predictions(predictions) is not None:
        copy.predictions.write(stage.key, stage.records[-1], predictions)
    return True


def _write(stage: Stage, store: Store, mark: Mapping[str, str] | None = None) -> Stage:
    """Write a stage to a store, to stay there and without its state; return the stored stage."""
    kept = {name: value for name, value in stage.environment.items() if name != OWNER}
    return store.write(
        stage.key,
        records=stage.records,
        facts=stage.facts,
        environment={**kept, **(mark or {})},
        state=None,
    )


def _copy(archive: zipfile.ZipFile, member: zipfile.ZipInfo, out: IO[bytes]) -> str:
    """Write one file of an archive to a stream, up to its stated size; return its sha256."""
    if member.compress_type not in _COMPRESSIONS:
        raise StudyArchiveError(
            f"{archive.filename}: its file {member.filename!r} is compressed by a method (number "
            f"{member.compress_type}) that is not supported"
        )
    digest = hashlib.sha256()
    with archive.open(member) as stream:  # which ends at the stated size
        while content := stream.read(_CHUNK):
            digest.update(content)
            out.write(content)
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
