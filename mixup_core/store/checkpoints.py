"""Store: all trained results, not only checkpoints, on a disk or in a bucket.

    stages/         records of the first epochs of runs: see sealed_files
    states/         checkpoints: model and optimizer after these epochs: see state_store
    predictions/    logits of finished runs: see prediction_store
    failures/       why runs ended early: see sealed_files
    quarantine/     damaged files: see sealed_files

Reading a store loads neither torch nor numpy.
"""

import dataclasses
import logging
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mixup_core.records import EpochRecord, Records
from mixup_core.store.errors import StoreError, UnreadableError
from mixup_core.store.files import Files, Folder, open_files
from mixup_core.store.manifests import (
    ADDED,
    MANIFEST_NAME,
    EpochFacts,
    Facts,
    Stage,
    check_epochs,
    checked,
    is_temporary,
    key_in,
    manifest_name,
    seal,
    stage_content,
    state_header,
    state_ref,
)
from mixup_core.store.prediction_store import PredictionStore
from mixup_core.store.sealed_files import FailureStore, SealedFiles, known
from mixup_core.store.state_store import StateStore

_TRIES = 10
"""Number of attempts to store a stage if other processes keep damaging or removing its file."""

_REPLACED = "an archive had brought other records than those trained here; these replace them"
_KEPT = "trained again with different records; the stored records are kept"
_FOLDERS = (
    "stages", "states", "failures", "predictions", "studies", "data", "leases", "stops", "uses",
    "claims",
)  # fmt: skip
_logger = logging.getLogger(__name__)


class Store:
    """Store of results: stages, states, predictions and failures of runs, in files below one URL.

    The object itself is stateless, so threads may share it. A write is durable when the method
    returns. If a process or machine stops during a write, either the old file or the new one
    exists. The records of a stage never change: if two processes write them, the first are kept.

    A damaged file is moved to `quarantine/` and logged, and then counts as missing: its epochs are
    trained again, with the same numbers. In a manifest (the JSON file of a stage), methods replace
    only the environment and the reference to the state; fields of later versions are kept.
    """

    url: str
    """URL of the store; a local path is made absolute, so that every process finds it."""
    folder: Path | None
    """Folder of a store on a local disk; None for a bucket."""
    files: Files
    """All files of the store, as a `Folder` or a `Bucket`."""
    states: StateStore
    """Model and optimizer after the last epoch of each stage."""
    predictions: PredictionStore
    """Logits of finished runs."""
    failures: FailureStore
    """Causes of runs that ended early."""

    def __init__(self, url: str) -> None:
        """Open a store; nothing is created before the first write."""
        self.files = open_files(url)
        self.folder = self.files.root if isinstance(self.files, Folder) else None
        self.url = url if self.folder is None else str(self.folder)
        self._sealed = SealedFiles(self.files)
        self.states = StateStore(self.files, self.read)
        self.predictions = PredictionStore(self.files)
        self.failures = FailureStore(self.files)

    @property
    def is_absent(self) -> bool:
        """True if the store is on a local disk and its folder does not exist."""
        return self.folder is not None and not self.folder.is_dir()

    def keys(
        self, *, proven: Collection[str] = (), proven_states: Collection[str] = ()
    ) -> Mapping[str, bool]:
        """Return stage keys, each with True if a state is stored; only proven ones are read."""
        with_state = self.states.keys()
        listed = {key: key in with_state for key in self._sealed.keys(MANIFEST_NAME)}
        relied_upon = {manifest_name(key): key for key in {*proven, *proven_states} & listed.keys()}
        for key in {*relied_upon.values()} - self._sealed.are_sound(relied_upon):
            del listed[key]
        for stage in self.read_all(key for key in proven_states if listed.get(key)).values():
            listed[stage.key] = self.states.read(stage) is not None
        return listed

    def read(self, key: str) -> Stage | None:
        """Return the stage of a stage key; None if it is missing or its file is damaged."""
        return self.read_all([key]).get(key)

    def read_all(self, keys: Iterable[str]) -> Mapping[str, Stage]:
        """Return stages by key, in the order of `keys`; leave out missing and damaged ones."""
        return self._sealed.records(Stage, {manifest_name(key): key for key in keys})

    def write(
        self,
        key: str,
        *,
        records: Sequence[EpochRecord],
        facts: Sequence[EpochFacts],
        environment: Mapping[str, str],
        state: bytes | None,
    ) -> Stage:
        """Store a stage and return the stage that is stored under its key afterwards.

        A stage that exists already is kept. If it has the given records and no readable state, the
        given state is added. If it has other records, training was not reproducible: a warning is
        logged, and the given records are not stored. A stage that an archive brought gives way to
        one that was trained here.
        """
        check_epochs(records, facts)
        blob = None if state is None else state_header(key) + state
        stage = Stage(
            key=key,
            records=Records(records),
            facts=Facts(facts),
            environment=dict(environment),
            state=None if blob is None else state_ref(blob),
        )
        name, manifest = manifest_name(key), seal(stage_content(stage))
        lost = 0
        while (stored := self.read(key)) is None:
            self.states.write(stage, blob)
            if self.files.create(name, manifest):
                self.states.write_if_removed(stage, blob)
                return stage
            lost += 1
            if lost == _TRIES:
                raise StoreError(
                    f"{name}: written {lost} times, but each time another process removed or "
                    "damaged the file; stop that process"
                )
        gives_way = ADDED in stored.environment and ADDED not in stage.environment
        if stored.records != stage.records:
            _logger.warning("stage %s: %s", key, _REPLACED if gives_way else _KEPT)
        if gives_way:
            self.states.write(stage, blob)
            self._sealed.write(name, manifest)
            self.states.write_if_removed(stage, blob)
            return stage
        if (
            stored.records == stage.records
            and blob is not None
            and self.states.read(stored) is None
        ):
            self.states.write(stage, blob)
            gained = dataclasses.replace(stored, state=stage.state)
            self._replace(gained)
            self.states.write_if_removed(stage, blob)
            return gained
        if lost and stage.state_name is not None:
            self.states.clear(stage.state_name)
        return stored

    def forget(self, key: str, fact: str) -> None:
        """Remove one entry, such as the host, from the environment stored with a stage."""
        stage = self.read(key)
        if stage is not None and fact in stage.environment:
            kept = {name: value for name, value in stage.environment.items() if name != fact}
            self._replace(dataclasses.replace(stage, environment=kept))

    def drop_state(self, key: str) -> None:
        """Remove the state (model and optimizer) of a stage and keep its records."""
        stage = self.read(key)
        if stage is not None and stage.state is not None:
            self._replace(dataclasses.replace(stage, state=None))
        self.states.remove(key)

    def discard(self, *stages: Stage) -> None:
        """Remove stages with the states they name; unlike `delete`, no folder is listed."""
        for stage in stages:
            self._clear(manifest_name(stage.key))
            if stage.state_name is not None:
                self.states.clear(stage.state_name)

    def delete(self, *keys: str) -> None:
        """Remove the stages of the given keys, with their states and temporary files.

        Predictions are kept, and so are files that a process is still writing. A stage that
        another process stores at the same moment may remain.
        """
        for name in self._names_of(keys):
            self._clear(name)

    def clear_torn(self, *keys: str) -> None:
        """Remove files left by processes that ended while they wrote or removed a stage.

        These are temporary files, and states of stages without a manifest (JSON file). Before a
        process removes a state, it renames the file to `.torn`; such files are removed too.
        """
        for name in self._names_of(keys):
            is_torn = name.startswith("states/") or is_temporary(name)
            if is_torn and self.read(key_in(name)) is None:
                self._clear(name)

    def _names_of(self, keys: Collection[str]) -> list[str]:
        """Return the names of all files of stages; their folders are listed."""
        wanted, shards = set(keys), sorted({checked(key)[:2] for key in keys})
        return [
            name
            for top in ("stages", "states")
            for shard in shards
            for name in self.files.names(f"{top}/{shard}")
            if key_in(name) in wanted
        ]

    def stages(self) -> Iterator[Stage]:
        """Yield every undamaged stage of this store of a known format, sorted by stage key."""
        for _, stage in known(sorted(self.keys()), self.read):
            if stage is not None:
                yield stage

    def quarantined(self) -> tuple[str, ...]:
        """Return the names of the damaged files, which the store keeps in `quarantine/`, sorted."""
        return self._sealed.quarantined()

    def verify(self, *, stale_after: float = 3600.0) -> tuple[str, ...]:
        """Read all results, quarantine damaged files, and remove what ended processes left."""
        faults, named = [], set()
        for key, stage in known(sorted(self.keys()), self.read):
            if stage is None:
                faults.append(f"{manifest_name(key)}: damaged")
            elif stage.state_name is not None:
                named.add(stage.state_name)
                if self.states.read(stage) is None:
                    faults.append(f"{stage.state_name}: missing or damaged")
        faults += self.failures.verify()
        faults += self.predictions.verify()
        for top in _FOLDERS:
            for name in list(self.files.names(top)):
                unnamed = top == "states" and name not in named
                left_behind = unnamed or is_temporary(name)
                if left_behind and self.files.age(name) >= stale_after:
                    self._clear(name)
        return tuple(faults)

    def _replace(self, stage: Stage) -> None:
        """Replace environment and state checksum in the manifest of a stage; keep the rest."""
        name, content = manifest_name(stage.key), stage_content(stage)
        new = {part: content[part] for part in ("environment", "state")}
        self._sealed.write(name, seal((self._sealed.content(name) or content) | new))

    def _clear(self, name: str) -> None:
        """Remove a file unless a process is writing it, a manifest names it, or it is foreign."""
        if name.startswith("states/"):
            self.states.clear(name)
        elif MANIFEST_NAME.fullmatch(name) or is_temporary(name):
            self._sealed.clear(name)


_FILE = "identity"
_FORM = re.compile(r"[0-9a-f]{32}")


def identity_of(store: Store) -> str:
    """Return the random ID of a store's entries in MLflow and Optuna; create a missing one."""
    if (found := known_identity(store)) is not None:
        return found
    made = secrets.token_hex(16)
    store.files.create(_FILE, made.encode())
    found = known_identity(store)
    if found is None:  # damaged: entries with the former ID no longer belong to this store
        store.files.write(_FILE, made.encode())
    return found or made


def known_identity(store: Store) -> str | None:
    """Return the random ID that marks a store's entries in MLflow and Optuna; None if absent."""
    try:
        found = store.files.read(_FILE).decode("ascii", errors="replace")
    except (FileNotFoundError, NotADirectoryError, UnreadableError):
        return None
    return found if _FORM.fullmatch(found) else None
