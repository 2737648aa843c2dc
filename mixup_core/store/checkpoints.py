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
import logging
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mixup_core.records import EpochRecord
from mixup_core.rules import printable
from mixup_core.store.files import Bucket, Folder, StoreError, UnreadableError, open_files
from mixup_core.store.manifests import (
    FORMAT,
    NOT_AS_WRITTEN,
    EpochFacts,
    Failure,
    FormatError,
    Stage,
    StateRef,
    built,
    check_epochs,
    is_manifest,
    seal,
    stage_content,
    state_header,
    state_ref,
    unseal,
)
from mixup_core.store.names import (
    MANIFEST_NAME,
    STATE_NAME,
    checked,
    failure_name,
    key_in,
    manifest_name,
    state_name,
    states_folder,
)
from mixup_core.store.prediction_store import PredictionStore

_ASIDE = re.compile(r"\.[0-9a-f]{8}\.torn$")
_TRIES = 10
"""Times a stage is stored again because what was there was damaged or removed meanwhile."""

_logger = logging.getLogger(__name__)


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
        states = {STATE_NAME.sub(r"\1", name) for name in self.files.names("states")}
        stages = map(MANIFEST_NAME.fullmatch, self.files.names("stages"))
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
        names = {manifest_name(key): key for key in keys}
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
        name = state_name(stage.key, stage.state.sha256)
        blob = self._read(name)
        if blob is None and self._bring_back(name):
            blob = self._read(name)
        if blob is None:
            return None
        header = state_header(stage.key)
        if state_ref(blob) != stage.state or not blob.startswith(header):
            reason = "has another size or sha256, or belongs to another stage"
            self._quarantine(name, reason, blob)
            return None
        return blob.removeprefix(header)

    def refuse_state(self, stage: Stage, reason: str) -> None:
        """Quarantine a state whose bytes are sound and yet of no use; the records stay."""
        if stage.state is not None:
            self._quarantine(state_name(stage.key, stage.state.sha256), reason)

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
        check_epochs(records, facts)
        blob = None if state is None else state_header(key) + state
        stage = Stage(
            key=key,
            records=tuple(records),
            facts=tuple(facts),
            environment=dict(environment),
            state=None if blob is None else state_ref(blob),
        )
        name, manifest = manifest_name(key), seal(stage_content(stage))
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
            self._remove_unnamed(state_name(key, stage.state.sha256))
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
            for shard in sorted({checked(key)[:2] for key in keys}):
                for name in list(self.files.names(f"{top}/{shard}")):
                    if key_in(name) in keys:
                        self._remove_unnamed(name)

    def clear_torn(self, *keys: str) -> None:
        """Remove what dead writers of some stages left behind; what is stored stays."""
        for shard in sorted({checked(key)[:2] for key in keys}):
            for top in ("stages", "states"):
                for name in list(self.files.names(f"{top}/{shard}")):
                    is_torn = name.endswith(".tmp") or top == "states"
                    if is_torn and (key := key_in(name)) in keys and self.read(key) is None:
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
        self._put(failure_name(failure.run_key), seal(dataclasses.asdict(failure)))

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
        self._remove(failure_name(run_key))

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
                problems.append(f"{manifest_name(key)}: damaged")
            elif stage.state is not None:
                name = state_name(key, stage.state.sha256)
                named.add(name)
                if self.read_state(stage) is None:
                    problems.append(f"{name}: missing or damaged")
        failures = [name for name in self.files.names("failures") if name.endswith(".json")]
        sound = {failure_name(key) for key in self.failures()}
        problems += [f"{name}: damaged" for name in failures if name not in sound]
        problems += self.predictions.verify()
        for top in ("stages", "states", "failures", "predictions", "studies", "leases", "stops"):
            for name in list(self.files.names(top)):
                unnamed = top == "states" and name not in named
                left_behind = unnamed or name.endswith(".tmp")
                if left_behind and self.files.age(name) >= stale_after:
                    self._remove_unnamed(name)
        return tuple(problems)

    def _damaged(self, keys: Iterable[str]) -> list[str]:
        """Return those of some stages whose manifest is missing or damaged; cheaper than `read`."""
        names = {manifest_name(key): key for key in keys}
        good = {
            names[name]
            for name, sealed in self.files.read_present(names)
            if is_manifest(sealed, names[name])
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
                facts=tuple(built(EpochFacts, facts) for facts in content["facts"]),
                environment=content["environment"],
                state=None if content["state"] is None else built(StateRef, content["state"]),
            )
        except NOT_AS_WRITTEN:
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
            failure = built(Failure, content)
        except NOT_AS_WRITTEN:
            self._quarantine(name, "is no failure")
            return None
        if name != f"failures/{failure.run_key}.json":
            self._quarantine(name, f"is the failure of {failure.run_key}")
            return None
        # It may be what another program, or another user of a shared store, had to say.
        return dataclasses.replace(failure, message=printable(failure.message))

    def _content(self, name: str, sealed: bytes | UnreadableError) -> dict[str, Any] | None:
        """Return the content of a manifest or failure; None if it was damaged.

        Raises:
            FormatError: If a newer version of this program wrote it.
        """
        if isinstance(sealed, UnreadableError):
            self._quarantine(name, str(sealed))
            return None
        content = unseal(sealed)
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
            self._put(state_name(stage.key, stage.state.sha256), blob)

    def _write_state_if_removed(self, stage: Stage, blob: bytes | None) -> None:
        """Write a state again that was taken for a dead writer's before a manifest named it."""
        if stage.state is not None and not self.files.has(
            state_name(stage.key, stage.state.sha256)
        ):
            self._write_state(stage, blob)

    def _replace(self, stage: Stage, changed: Stage) -> None:
        """Let a stage have another state or environment, and keep what a later version wrote."""
        name = manifest_name(stage.key)
        sealed = self._read(name)
        there = None if sealed is None else self._content(name, sealed)
        content = stage_content(changed)
        new = {part: content[part] for part in ("environment", "state")}
        self._put(name, seal((there or content) | new))

    def _remove_states(self, key: str) -> None:
        for name in list(self.files.names(states_folder(key))):
            if Path(name).name.startswith(f"{key}-"):
                self._remove_unnamed(name)

    def _remove_unnamed(self, name: str) -> None:
        """Remove a file that was listed, unless its writer lives or a manifest names it by now."""
        if not STATE_NAME.fullmatch(_ASIDE.sub("", name)):
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
            stage = self.read(key_in(state))
        except FormatError:
            return True
        return stage is not None and (
            stage.state is not None and state_name(stage.key, stage.state.sha256) == state
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
