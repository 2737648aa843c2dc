"""StateStore: states of model and optimizer in a store.

    states/<2 hex>/<key>-<sha256>.bin    state of model and optimizer, named by its own sha256
    states/<...>.bin.<8 hex>.torn        state that a process has begun to remove, by renaming it

States are handled as bytes, so that reading a store loads neither torch nor numpy.
"""

import contextlib
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from mixup_core.store.files import Files
from mixup_core.store.manifests import (
    STATE_NAME,
    FormatError,
    Stage,
    checked,
    is_temporary,
    key_in,
    state_header,
    state_ref,
)
from mixup_core.store.sealed_files import SealedFiles

_ASIDE = re.compile(r"\.[0-9a-f]{8}\.torn$")


class StateStore:
    """Reads, writes and removes states of model and optimizer, by stage key; caches nothing.

    A stage's manifest, the JSON file that describes it, names its state. If one process stores a
    stage while another removes it, the state is not lost. The storing process writes the manifest,
    and then writes the state again if it is gone. The removing process renames the state, and then
    renames it back if a manifest names it. So one of the two notices the other.
    """

    def __init__(self, files: Files, stage_of: Callable[[str], Stage | None]) -> None:
        """Open the states among the files of a store; `stage_of` reads the stage of a key."""
        self._files = files
        self._sealed = SealedFiles(files)
        self._stage_of = stage_of

    def keys(self) -> frozenset[str]:
        """Return the stage keys under which states are stored; no file is validated."""
        return frozenset(self._sealed.keys(STATE_NAME))

    def read(self, stage: Stage) -> bytes | None:
        """Return a stage's state as bytes; None if it was not kept, is missing or is damaged."""
        if (name := stage.state_name) is None:
            return None
        blob = self._sealed.read(name)
        if blob is None and self._bring_back(name):
            blob = self._sealed.read(name)
        if blob is None:
            return None
        header = state_header(stage.key)
        if state_ref(blob) != stage.state or not blob.startswith(header):
            reason = "does not match its manifest, or belongs to another stage"
            self._sealed.quarantine(name, reason, blob)
            return None
        return blob.removeprefix(header)

    def refuse(self, stage: Stage, reason: str) -> None:
        """Move a stage's state, which cannot be loaded, to quarantine; keep the stage's records."""
        if stage.state_name is not None:
            self._sealed.quarantine(stage.state_name, reason)

    def write(self, stage: Stage, blob: bytes | None) -> None:
        """Write the state file of a stage; call this before the stage's manifest is written."""
        if blob is not None and stage.state_name is not None:
            self._sealed.write(stage.state_name, blob)

    def write_if_removed(self, stage: Stage, blob: bytes | None) -> None:
        """Write a stage's state again if another process removed it while the stage was stored."""
        if stage.state_name is not None and not self._files.has(stage.state_name):
            self.write(stage, blob)

    def remove(self, key: str) -> None:
        """Remove the states stored under a stage key, except one named by the stage's manifest."""
        for name in list(self._files.names(f"states/{checked(key)[:2]}")):
            if Path(name).name.startswith(f"{key}-"):
                self.clear(name)

    def clear(self, name: str) -> None:
        """Remove a file of `states/` unless a process is writing it or a manifest names it.

        Files of other programs stay.
        """
        if is_temporary(name):
            self._sealed.clear(name)
        if not STATE_NAME.fullmatch(_ASIDE.sub("", name)):
            return
        if not _ASIDE.search(name):
            listed, name = name, f"{name}.{secrets.token_hex(4)}.torn"
            try:
                self._files.move(listed, name)
            except FileNotFoundError:
                return  # another process was faster
        if self._is_named(_ASIDE.sub("", name)):
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                self._files.move(name, _ASIDE.sub("", name))
        else:
            self._sealed.remove(name)

    def _is_named(self, state: str) -> bool:
        """Return whether a manifest names a state; True if the manifest has a newer format."""
        try:
            stage = self._stage_of(key_in(state))
        except FormatError:
            return True
        return stage is not None and stage.state_name == state

    def _bring_back(self, state: str) -> bool:
        """Restore a state that another process renamed to remove it; return whether it existed."""
        for name in list(self._files.names(str(Path(state).parent))):
            if name.startswith(f"{state}.") and _ASIDE.search(name):
                with contextlib.suppress(FileNotFoundError):
                    self._files.move(name, state)
        return self._files.has(state)
