"""Store: what has been trained, kept under stage keys on a disk or in a bucket.

    stages/<2 hex>/<key>.json            manifest: records, facts, environment, name of the state
    states/<2 hex>/<key>-<sha256>.bin    state of model and optimizer, named by its own sha256
    states/<...>.bin.<8 hex>.torn        state that is being removed; no manifest should name it
    predictions/<2 hex>/<key>.bin        see mixup_core.store.prediction_store
    failures/<run key>.json              why a run ended early
    quarantine/                          damaged files, moved here by whoever read them

A state is bytes here, so that reading a store loads neither torch nor numpy.
"""

import contextlib
import dataclasses
import hashlib
import json
import logging
import math
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from mixup_core.records import EpochRecord
from mixup_core.store.files import Bucket, Folder, StoreError, UnreadableError, open_files
from mixup_core.store.prediction_store import PredictionStore

FORMAT = 1
"""Raised when the content of a manifest changes its meaning. How a manifest carries its sha256
never changes, so that one of a newer format can be told from a damaged one."""

_MANIFEST_NAME = re.compile(r"stages/../([0-9a-f]+)\.json")
_STATE_NAME = re.compile(r"states/../([0-9a-f]+)-[0-9a-f]{64}\.bin")
_ASIDE = re.compile(r"\.[0-9a-f]{8}\.torn$")
_TRIES = 10
"""Times a stage is stored again because what was there was damaged or removed meanwhile."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochFacts:
    """What is true of one training of an epoch but not of the computation; no key contains it."""

    seconds: float
    """Wall seconds of training and evaluating the epoch."""
    stored_at_ms: int
    """Unix time in ms at which the epoch was first stored; the timestamp of its MLflow points."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StateRef:
    """Which file holds a state."""

    sha256: str
    """Of the whole file, as `sha256sum` prints it."""
    size: int
    """Bytes of the whole file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """The first epochs of every run that has this stage key."""

    key: str
    records: tuple[EpochRecord, ...]
    """One per epoch, epoch 0 first."""
    facts: tuple[EpochFacts, ...]
    """One per epoch, as `records`."""
    environment: Mapping[str, str]
    """Host, device, versions, threads: what else can change bits, as the writer gave it."""
    state: StateRef | None
    """State after the last of these epochs; None when only the records are kept."""

    @property
    def epochs(self) -> int:
        """Number of epochs trained."""
        return len(self.records)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a run ended before its last epoch."""

    run_key: str
    kind: Literal["diverged", "failed"]
    """`diverged`: the loss left the finite numbers, as it would again. `failed`: anything else."""
    message: str
    epoch: int | None
    """0-based epoch that was being trained; None if none had begun."""
    attempts: int
    """How often the run was tried."""


class FormatError(StoreError):
    """The store was written by a newer version of this program."""


class Store:
    """Stages and failures under one URL. Holds no state of its own: share it, or make another.

    Whatever a method has written is durable when it returns, and a process or machine that stops
    in between leaves the file as it was or as it should be. A stage is written once: of two
    writers the first wins.

    Damaged files are moved to `quarantine/`, logged, and from then on absent: the epochs are
    trained again, with the same numbers. What is no file (a folder, a FIFO, a link that leads
    nowhere) is moved as it is. Fields that a later version added to a manifest are kept.

    A state is never lost to another process that stores or removes the same stage: whoever stores
    looks for the state once the manifest names it, whoever removes puts the state aside and looks
    for the manifest then, so one of the two sees the other.
    """

    url: str
    """As given; a local path is absolute, so that every process finds it."""
    folder: Path | None
    """The store on a local disk; None in a bucket."""
    files: Folder | Bucket
    """What the store is made of."""

    def __init__(self, url: str) -> None:
        """Name a store; nothing is created before the first write.

        Args:
            url: A path, or any URL of fsspec whose files appear whole (`s3://`, `gs://`, ...).

        Raises:
            StoreError: If nobody knows such a URL, or a package for it is missing.
        """
        self.files = open_files(url)
        self.folder = self.files.root if isinstance(self.files, Folder) else None
        self.url = url if self.folder is None else str(self.folder)

    @property
    def predictions(self) -> PredictionStore:
        """What finished runs predict."""
        return PredictionStore(self.files)

    def keys(
        self, *, proven: Collection[str] = (), proven_states: Collection[str] = ()
    ) -> Mapping[str, bool]:
        """Return every stored stage key with whether a state lies beside it.

        A name is no proof: what is relied upon without being read again is to be proven here.

        Args:
            proven: Keys whose manifests are checked; a damaged one is quarantined, and absent.
            proven_states: Keys whose states are read too; without a good one the value is False.

        Raises:
            FormatError: If a newer version of this program wrote one of the manifests checked.
        """
        states = {_STATE_NAME.sub(r"\1", name) for name in self.files.names("states")}
        stages = map(_MANIFEST_NAME.fullmatch, self.files.names("stages"))
        listed = {match[1]: match[1] in states for match in stages if match}
        for key in self._damaged(key for key in {*proven, *proven_states} if key in listed):
            del listed[key]
        for stage in self.read_all(key for key in proven_states if listed.get(key)).values():
            listed[stage.key] = self.read_state(stage) is not None
        return listed

    def read(self, key: str) -> Stage | None:
        """Return the stage stored under a key; None if there is none or its manifest is damaged.

        Raises:
            FormatError: If a newer version of this program wrote it.
        """
        return next(iter(self.read_all([key]).values()), None)

    def read_all(self, keys: Iterable[str]) -> Mapping[str, Stage]:
        """Return those of some stages that are stored and sound, in the order given.

        In a bucket they are asked for together. What is stored beside them costs nothing.

        Raises:
            FormatError: If a newer version of this program wrote one of them.
        """
        names = {_manifest_name(key): key for key in keys}
        found = {}
        for name, sealed in self.files.read_present(names):
            stage = self._stage_in(name, sealed, names[name])
            if stage is not None:
                found[stage.key] = stage
        return {key: found[key] for key in names.values() if key in found}

    def read_state(self, stage: Stage) -> bytes | None:
        """Return the bytes given to `write`; None if they are not kept, missing or damaged."""
        if stage.state is None:
            return None
        name = _state_name(stage.key, stage.state)
        blob = self._read(name)
        if blob is None and self._bring_back(name):
            blob = self._read(name)
        if blob is None:
            return None
        header = _state_header(stage.key)
        if _state_ref(blob) != stage.state or not blob.startswith(header):
            reason = "has another size or sha256, or belongs to another stage"
            self._quarantine(name, reason, blob)
            return None
        return blob.removeprefix(header)

    def refuse_state(self, stage: Stage, reason: str) -> None:
        """Quarantine a state whose bytes are sound and yet of no use; the records stay."""
        if stage.state is not None:
            self._quarantine(_state_name(stage.key, stage.state), reason)

    def write(
        self,
        key: str,
        *,
        records: Sequence[EpochRecord],
        facts: Sequence[EpochFacts],
        environment: Mapping[str, str],
        state: bytes | None,
    ) -> Stage:
        """Store a stage and return what is stored under its key now.

        A stage that is there already stays, except that one without a good state gains the state
        given, if the records are equal. Other records are a finding (an epoch that cannot be
        reproduced): they are logged and not stored.

        Args:
            key: The stage key (`mixup_core.keys.stage_key`).
            records: One per epoch, epoch 0 first, all metrics finite.
            facts: One per epoch.
            environment: What else can change bits.
            state: Model and optimizer after the last epoch, serialised; None keeps records only.

        Raises:
            ValueError: If records or facts are not one per epoch, or a number is not finite.
            StoreFullError: If the disk is full.
            FormatError: If a newer version of this program wrote the stage that is there.
            StoreError: If what is stored under the key is removed as often as it is stored.
        """
        _check_epochs(records, facts)
        blob = None if state is None else _state_header(key) + state
        stage = Stage(
            key=key,
            records=tuple(records),
            facts=tuple(facts),
            environment=dict(environment),
            state=None if blob is None else _state_ref(blob),
        )
        name, manifest = _manifest_name(key), _sealed(_stage_content(stage))
        lost = 0
        while (stored := self.read(key)) is None:
            self._write_state(stage, blob)
            if self.files.create(name, manifest):
                self._write_state_if_removed(stage, blob)
                return stage
            lost += 1
            if lost == _TRIES:
                raise StoreError(f"{name}: stored {lost} times, and each time gone or damaged")
        if stored.records != stage.records:
            _logger.warning("stage %s: trained again with other records; the first stay", key)
        elif blob is not None and self.read_state(stored) is None:
            self._write_state(stage, blob)
            gained = dataclasses.replace(stored, state=stage.state)
            self._replace(stored, gained)
            self._write_state_if_removed(stage, blob)
            return gained
        if lost and stage.state is not None:
            self._remove_unnamed(_state_name(key, stage.state))
        return stored

    def forget(self, key: str, fact: str) -> None:
        """Remove an entry of the environment of a stage; without it, do nothing.

        Raises:
            FormatError: If a newer version of this program wrote the stage.
        """
        stage = self.read(key)
        if stage is not None and fact in stage.environment:
            kept = {name: value for name, value in stage.environment.items() if name != fact}
            self._replace(stage, dataclasses.replace(stage, environment=kept))

    def drop_state(self, key: str) -> None:
        """Remove the state of a stage and keep its records.

        Raises:
            FormatError: If a newer version of this program wrote the stage.
        """
        stage = self.read(key)
        if stage is not None and stage.state is not None:
            self._replace(stage, dataclasses.replace(stage, state=None))
        self._remove_states(key)

    def delete(self, *keys: str) -> None:
        """Remove stages altogether, with all that dead writers of them left behind.

        A stage that another process stores at that moment may stay.
        """
        for top in ("stages", "states"):
            for shard in sorted({_checked(key)[:2] for key in keys}):
                for name in list(self.files.names(f"{top}/{shard}")):
                    if _key_in(name) in keys:
                        self._remove_unnamed(name)

    def clear_torn(self, *keys: str) -> None:
        """Remove what dead writers of some stages left behind; what is stored stays."""
        for shard in sorted({_checked(key)[:2] for key in keys}):
            for top in ("stages", "states"):
                for name in list(self.files.names(f"{top}/{shard}")):
                    is_torn = name.endswith(".tmp") or top == "states"
                    if is_torn and (key := _key_in(name)) in keys and self.read(key) is None:
                        self._remove_unnamed(name)

    def stages(self) -> Iterator[Stage]:
        """Yield every readable stage, in the order of the keys.

        Raises:
            FormatError: If a newer version of this program wrote one of them.
        """
        for key in sorted(self.keys()):
            stage = self.read(key)
            if stage is not None:
                yield stage

    def quarantined(self) -> tuple[str, ...]:
        """Return the names of the damaged files that were put aside, sorted."""
        return tuple(sorted(self.files.names("quarantine")))

    def write_failure(self, failure: Failure) -> None:
        """Store why a run ended early, in place of what was stored for that run before.

        Raises:
            StoreFullError: If the disk is full.
        """
        self._put(_failure_name(failure.run_key), _sealed(dataclasses.asdict(failure)))

    def failures(self) -> Mapping[str, Failure]:
        """Return the stored failures by run key.

        Raises:
            FormatError: If a newer version of this program wrote one of them.
        """
        found = {}
        names = [name for name in self.files.names("failures") if name.endswith(".json")]
        for name, sealed in self.files.read_present(names):
            failure = self._failure_in(name, sealed)
            if failure is not None:
                found[failure.run_key] = failure
        return found

    def clear_failure(self, run_key: str) -> None:
        """Forget why a run ended early; without a failure, do nothing."""
        self._remove(_failure_name(run_key))

    def verify(self, *, stale_after: float = 3600.0) -> tuple[str, ...]:
        """Read every file, quarantine what is damaged, remove what dead writers left behind.

        Args:
            stale_after: Age in seconds from which a file that no manifest names is taken for left
                behind; a younger one may belong to a stage that is being written.

        Returns:
            One line per damaged or missing file; empty if all is well.

        Raises:
            FormatError: If a newer version of this program wrote a manifest.
        """
        problems, named = [], set()
        for key in sorted(self.keys()):
            stage = self.read(key)
            if stage is None:
                problems.append(f"{_manifest_name(key)}: damaged")
            elif stage.state is not None:
                name = _state_name(key, stage.state)
                named.add(name)
                if self.read_state(stage) is None:
                    problems.append(f"{name}: missing or damaged")
        failures = [name for name in self.files.names("failures") if name.endswith(".json")]
        sound = {_failure_name(key) for key in self.failures()}
        problems += [f"{name}: damaged" for name in failures if name not in sound]
        problems += self.predictions.verify()
        for top in ("stages", "states", "failures", "predictions"):
            for name in list(self.files.names(top)):
                unnamed = top == "states" and name not in named
                left_behind = unnamed or name.endswith(".tmp")
                if left_behind and self.files.age(name) >= stale_after:
                    self._remove_unnamed(name)
        return tuple(problems)

    def _damaged(self, keys: Iterable[str]) -> list[str]:
        """Return those of some stages whose manifest is missing or damaged; cheaper than `read`."""
        names = {_manifest_name(key): key for key in keys}
        good = {
            names[name]
            for name, sealed in self.files.read_present(names)
            if _is_manifest(sealed, names[name])
            or self._stage_in(name, sealed, names[name]) is not None
        }
        return [key for key in names.values() if key not in good]

    def _read(self, name: str) -> bytes | None:
        """Return a file's content; None if it is missing, or was damaged."""
        try:
            return self.files.read(name)
        except FileNotFoundError:
            return None
        except UnreadableError as error:
            self._quarantine(name, str(error))
            return None

    def _stage_in(self, name: str, sealed: bytes | UnreadableError, key: str) -> Stage | None:
        content = self._content(name, sealed)
        if content is None:
            return None
        try:
            stage = Stage(
                key=content["key"],
                records=tuple(EpochRecord.from_plain(record) for record in content["records"]),
                facts=tuple(_built(EpochFacts, facts) for facts in content["facts"]),
                environment=content["environment"],
                state=None if content["state"] is None else _built(StateRef, content["state"]),
            )
        except _NOT_AS_WRITTEN:
            self._quarantine(name, "is no manifest")
            return None
        if stage.key != key:
            self._quarantine(name, f"is the manifest of {stage.key}")
            return None
        return stage

    def _failure_in(self, name: str, sealed: bytes | UnreadableError) -> Failure | None:
        content = self._content(name, sealed)
        if content is None:
            return None
        try:
            failure = _built(Failure, content)
        except _NOT_AS_WRITTEN:
            self._quarantine(name, "is no failure")
            return None
        if name != f"failures/{failure.run_key}.json":
            self._quarantine(name, f"is the failure of {failure.run_key}")
            return None
        return failure

    def _content(self, name: str, sealed: bytes | UnreadableError) -> dict[str, Any] | None:
        """Return the content of a manifest or failure; None if it was damaged.

        Raises:
            FormatError: If a newer version of this program wrote it.
        """
        if isinstance(sealed, UnreadableError):
            self._quarantine(name, str(sealed))
            return None
        content = _unsealed(sealed)
        if content is None:
            self._quarantine(name, "does not have the sha256 it states", sealed)
            return None
        if content["format"] > FORMAT:
            raise FormatError(
                f"{name}: store format {content['format']}, this program knows {FORMAT}"
            )
        return content

    def _put(self, name: str, data: bytes) -> None:
        """Write a file in place of what has its name."""
        try:
            self.files.write(name, data)
        except IsADirectoryError:
            self._quarantine(name, "is no file")
            self.files.write(name, data)

    def _remove(self, name: str) -> None:
        """Remove a file; what is none may hold somebody's files, and is put aside."""
        try:
            self.files.remove(name)
        except IsADirectoryError:
            self._quarantine(name, "is no file")

    def _write_state(self, stage: Stage, blob: bytes | None) -> None:
        if blob is not None and stage.state is not None:
            self._put(_state_name(stage.key, stage.state), blob)

    def _write_state_if_removed(self, stage: Stage, blob: bytes | None) -> None:
        """Write a state again that was taken for a dead writer's before a manifest named it."""
        if stage.state is not None and not self.files.has(_state_name(stage.key, stage.state)):
            self._write_state(stage, blob)

    def _replace(self, stage: Stage, changed: Stage) -> None:
        """Let a stage have another state or environment, and keep what a later version wrote."""
        name = _manifest_name(stage.key)
        sealed = self._read(name)
        there = None if sealed is None else self._content(name, sealed)
        content = _stage_content(changed)
        new = {part: content[part] for part in ("environment", "state")}
        self._put(name, _sealed((there or content) | new))

    def _remove_states(self, key: str) -> None:
        for name in list(self.files.names(_states_folder(key))):
            if Path(name).name.startswith(f"{key}-"):
                self._remove_unnamed(name)

    def _remove_unnamed(self, name: str) -> None:
        """Remove a file that was listed, unless its writer lives or a manifest names it by now."""
        if not _STATE_NAME.fullmatch(_ASIDE.sub("", name)):
            if not (name.endswith(".tmp") and self.files.is_being_written(name)):
                self._remove(name)
            return
        if not _ASIDE.search(name):
            listed, name = name, f"{name}.{secrets.token_hex(4)}.torn"
            try:
                self.files.move(listed, name)
            except FileNotFoundError:
                return  # another process was faster
        if self._is_named(_ASIDE.sub("", name)):
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                self.files.move(name, _ASIDE.sub("", name))
        else:
            self._remove(name)

    def _is_named(self, state: str) -> bool:
        """Return whether a manifest names a state; one of a newer format may."""
        try:
            stage = self.read(_key_in(state))
        except FormatError:
            return True
        return stage is not None and (
            stage.state is not None and _state_name(stage.key, stage.state) == state
        )

    def _bring_back(self, state: str) -> bool:
        """Return whether a state was there, put aside by a process that removed or died."""
        for name in list(self.files.names(str(Path(state).parent))):
            if name.startswith(f"{state}.") and _ASIDE.search(name):
                with contextlib.suppress(FileNotFoundError):
                    self.files.move(name, state)
        return self.files.has(state)

    def _quarantine(self, name: str, reason: str, content: bytes | None = None) -> None:
        """Move a damaged file aside.

        Args:
            name: The file.
            reason: What is wrong with it.
            content: What was read; a file with another by now is a good one, and put back.
        """
        aside = f"quarantine/{Path(name).name}"
        try:
            self.files.move(name, aside)
        except FileNotFoundError:
            return  # another reader was faster
        if content is not None and (moved := self._read_aside(aside)) not in {None, content}:
            assert moved is not None
            self.files.create(name, moved)
            return
        _logger.warning("%s %s; moved to quarantine", name, reason)

    def _read_aside(self, name: str) -> bytes | None:
        try:
            return self.files.read(name)
        except (FileNotFoundError, UnreadableError):
            return None


def _check_epochs(records: Sequence[EpochRecord], facts: Sequence[EpochFacts]) -> None:
    epochs = [record.epoch for record in records]
    if not epochs or epochs != list(range(len(epochs))):
        raise ValueError(f"`one record per epoch, epoch 0 first` must hold, got ({epochs=}).")
    if len(facts) != len(records):
        raise ValueError(
            f"`one facts per record` must hold, got (records={len(records)}, facts={len(facts)})."
        )
    for record, fact in zip(records, facts, strict=True):
        for name, value in {**record.metrics, "seconds": fact.seconds}.items():
            if not math.isfinite(value):
                raise ValueError(
                    f"`{name} is finite` must hold, got (value={value}, epoch={record.epoch})."
                )


def _checked(key: str) -> str:
    """Return a key that is safe in a path.

    Raises:
        ValueError: If it is not made of lower-case hexadecimal digits.
    """
    if not re.fullmatch(r"[0-9a-f]{4,64}", key):
        raise ValueError(f"`a key is 4 to 64 hexadecimal digits` must hold, got ({key=}).")
    return key


def _manifest_name(key: str) -> str:
    return f"stages/{_checked(key)[:2]}/{key}.json"


def _key_in(name: str) -> str:
    """Return the key that the name of a manifest, a state or what was left of one begins with."""
    return re.split(r"[-.]", Path(name).name)[0]


def _states_folder(key: str) -> str:
    return f"states/{_checked(key)[:2]}"


def _state_name(key: str, state: StateRef) -> str:
    return f"{_states_folder(key)}/{key}-{state.sha256}.bin"


def _failure_name(run_key: str) -> str:
    return f"failures/{_checked(run_key)}.json"


def _state_header(key: str) -> bytes:
    """Return what a state's file begins with: it binds the content to its stage."""
    return f"mixsweep state of stage {_checked(key)}\n".encode()


def _state_ref(blob: bytes) -> StateRef:
    return StateRef(sha256=hashlib.sha256(blob).hexdigest(), size=len(blob))


def _stage_content(stage: Stage) -> dict[str, Any]:
    return {
        "key": stage.key,
        "records": [record.to_plain() for record in stage.records],
        "facts": [dataclasses.asdict(facts) for facts in stage.facts],
        "environment": stage.environment,
        "state": None if stage.state is None else dataclasses.asdict(stage.state),
    }


def _sealed(content: Mapping[str, Any]) -> bytes:
    """Return canonical JSON with its own sha256 put in front of the other keys."""
    text = json.dumps(
        {"format": FORMAT, **content}, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return _seal(text.encode()) + text.encode()[1:]


def _unsealed(sealed: bytes) -> dict[str, Any] | None:
    """Return the content `_sealed` was given and its format; None if a single bit differs."""
    if not _is_sealed(sealed):
        return None
    try:
        content: dict[str, Any] = json.loads(b"{" + sealed[len(_seal(b"")) :])
    except (ValueError, RecursionError):
        return None  # sealed by somebody else
    return content if isinstance(content.get("format"), int) else None


def _is_sealed(sealed: bytes) -> bool:
    return sealed.startswith(_seal(b"{" + sealed[len(_seal(b"")) :]))


def _is_manifest(sealed: bytes | UnreadableError, key: str) -> bool:
    """Return whether bytes are surely the manifest of a stage in this format, without parsing.

    In canonical JSON the two fields stand side by side, unless a later version put one between.
    """
    fields = b'"format":%d,"key":"%s",' % (FORMAT, key.encode())
    return isinstance(sealed, bytes) and fields in sealed and _is_sealed(sealed)


_NOT_AS_WRITTEN = (KeyError, TypeError, ValueError, AttributeError)
"""What the content of a file raises that somebody else sealed."""

_Built = TypeVar("_Built", EpochFacts, StateRef, Failure)


def _built(kind: type[_Built], plain: Mapping[str, Any]) -> _Built:
    """Return a value from the fields it has; those that a later version added are ignored."""
    return kind(**{field.name: plain[field.name] for field in dataclasses.fields(kind)})


def _seal(text: bytes) -> bytes:
    return b'{"sha256":"%s",' % hashlib.sha256(text).hexdigest().encode()
