"""Claims: which stages a live driver trains, starts from or removes, so that no other interferes.

    claims/<study>.json     the claims of the driver of one study; void once its lease is
    wanted/<stage key>      a stage that another driver waits for: whoever trains it stores it

Every driver writes its own note first and reads those of the others then: of two that claim the
same stage at the same time at least one sees the other. Whoever sees another's claim gives its own
up, and tries again a little later. A claim lives as long as the lease of its driver, which a
folder's locks or a bucket's beats prove, so nothing else has to be renewed.
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile

from mixup_core.store.bucket import Bucket
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from mixup_core.store.local_files import make_private_folder
from mixup_core.store.notes import parse_note
from mixup_core.store.wanted import wanted_name
from sweeps.leasing.lease import Lease

_FOLDER = "claims"
_DIGITS = 16
"""Characters of a stage key in a note; two that agree in them cost a wait and nothing else."""
_LOOK_EVERY, _LOOK_EVERY_IN_A_BUCKET = 0.5, 2.0
"""Seconds between two looks at a stage that another driver has claimed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """What live drivers have claimed, as the first digits of stage keys."""

    trained: frozenset[str] = frozenset()
    """Stages that are being trained."""
    used: frozenset[str] = frozenset()
    """Stages that a run will start or learn from."""
    removed: frozenset[str] = frozenset()
    """Stages whose state is being removed."""

    def trains(self, key: str) -> bool:
        """Return whether a stage is being trained."""
        return key[:_DIGITS] in self.trained

    def removes(self, key: str) -> bool:
        """Return whether the state of a stage is being removed."""
        return key[:_DIGITS] in self.removed

    def needs(self, key: str) -> bool:
        """Return whether the state of a stage must stay."""
        return self.trains(key) or key[:_DIGITS] in self.used


@dataclass(kw_only=True)
class Claims:
    """The claims of one driver."""

    store: Store
    study: str
    token: int
    """Of the lease that the driver holds."""
    clock: Callable[[], float] = time.monotonic
    _trained: dict[str, Sequence[str]] = field(default_factory=dict)
    """Key of a run to the stages that this driver trains for it."""
    _used: dict[str, Sequence[str]] = field(default_factory=dict)
    _removed: Sequence[str] = ()
    _again_at: dict[str, float] = field(default_factory=dict)
    """Key of a run that another driver trains to the time of the next look at it."""
    _is_outdated: bool = False

    def use(self, stages: Mapping[str, Sequence[str]]) -> None:
        """Claim the stages that runs will start or learn from, until they end.

        Args:
            stages: Key of a run to its stages.
        """
        if stages:
            self._used |= stages
            self._write()

    def train(self, run: str, left: Callable[[bool], Sequence[str]]) -> bool:
        """Claim what a run has left to train; return whether no other driver is at it.

        Args:
            run: Its key.
            left: Returns the stages left, the next one first; the argument says whether the store
                must be asked, since another driver may have stored some of them.
        """
        if self.clock() < self._again_at.get(run, 0.0):
            return False
        stages = self._trained[run] = left(run in self._again_at)
        self._write()
        others = self.of_others()
        is_free = not any(map(others.trains, stages))
        if is_free and not any(map(others.removes, self._used.get(run, ()))):
            self._again_at.pop(run, None)
            return True
        del self._trained[run]
        self._write()
        shared = tuple(takewhile(others.trains, stages))
        if shared and len(shared) < len(stages):
            self.want(shared[-1])
        wait = _LOOK_EVERY_IN_A_BUCKET if isinstance(self.store.files, Bucket) else _LOOK_EVERY
        self._again_at[run] = self.clock() + wait * random.uniform(0.5, 1.5)  # noqa: S311
        return False

    def want(self, stage: str) -> None:
        """Let whoever trains a stage store it with its state."""
        self.store.files.create(wanted_name(stage), b"")

    def remove(self, stages: Sequence[str]) -> tuple[str, ...]:
        """Claim stages whose state is to be removed; return those that no other driver needs."""
        self._removed = stages
        self._write()
        others = self.of_others()
        return tuple(stage for stage in stages if not others.needs(stage))

    def end(self, run: str) -> None:
        """Give up what was claimed for a run; others see it from the next `refresh` on."""
        trained, used = self._trained.pop(run, None), self._used.pop(run, None)
        self._is_outdated |= trained is not None or used is not None

    def refresh(self) -> None:
        """Let others see what was given up."""
        if self._is_outdated:
            self._write()

    def of_others(self) -> Claimed:
        """Return what the live drivers of other studies have claimed."""
        return read_claims(self.store, but=self.study)

    def close(self) -> None:
        """Give up everything."""
        with suppress(StoreError, OSError):
            self.store.files.remove(_name(self.study))

    def _write(self) -> None:
        content = {
            "token": self.token,
            "trained": _short(key for keys in self._trained.values() for key in keys),
            "used": _short(key for keys in self._used.values() for key in keys),
            "removed": _short(self._removed),
        }
        self._is_outdated = False
        _put(self.store, _name(self.study), json.dumps(content).encode())


def read_claims(store: Store, *, but: str | None = None) -> Claimed:
    """Return what live drivers have claimed.

    Args:
        store: The store.
        but: Study whose claims are left out.
    """
    found: dict[str, set[str]] = {"trained": set(), "used": set(), "removed": set()}
    for study, note in _notes(store):
        if study != but and _lives(store, study, note):
            for part, keys in found.items():
                listed = note.get(part)
                if isinstance(listed, list):
                    keys |= {key for key in listed if isinstance(key, str)}
    return Claimed(**{part: frozenset(keys) for part, keys in found.items()})


def _notes(store: Store) -> Iterator[tuple[str, Mapping[str, object]]]:
    names = sorted(name for name in store.files.names(_FOLDER) if name.endswith(".json"))
    for name, content in store.files.read_present(names):
        note = parse_note(content)
        if note is not None:
            yield name.removeprefix(f"{_FOLDER}/").removesuffix(".json"), note


def _lives(store: Store, study: str, note: Mapping[str, object]) -> bool:
    """Return whether the driver that wrote a note still holds its lease."""
    try:
        holder = Lease.current(store, study)
    except ValueError:  # no name of a study: somebody else's file
        return False
    return holder is not None and holder.token == note.get("token")


def _put(store: Store, name: str, content: bytes) -> None:
    """Write a note, in a folder without waiting for the disk: it is void after a crash anyway."""
    if isinstance(store.files, Bucket):
        store.files.write(name, content)
        return
    path = store.files.root / name
    make_private_folder(path.parent)
    beside = path.with_name(f"{path.name}.tmp")
    beside.write_bytes(content)
    beside.replace(path)


def _short(keys: Iterator[str] | Sequence[str]) -> list[str]:
    return sorted({key[:_DIGITS] for key in keys})


def _name(study: str) -> str:
    return f"{_FOLDER}/{study}.json"
