"""Claims: stages that a running driver reserves because it trains, starts from or deletes them.

They are not the claims of a study file. They prevent drivers of different studies in one store from
training a stage twice, or deleting a state (checkpoint) that another driver needs.

    claims/<study>.json     the claims of the driver of one study; invalid after its lease ends
    claims/<study>.planned  every stage of the runs that this driver has not finished
    wanted/<stage key>      request to the driver that trains this stage: store its state

Every driver first writes its own claims and then reads the claims of the other drivers. So if two
drivers claim the same stage at the same time, at least one sees the claim of the other. That driver
withdraws its own claim and tries again later. A claim is valid as long as its driver has its lease,
so claims are never renewed.

If runs of two drivers A and B share their first epochs, A trains these epochs and stores the state
after the last of them; B starts its run from this state. If A's run is already in training, B asks
for the state by a file in `wanted/`. If A's run has not begun, A finds the shared stage in B's
`.planned` file, and stores the state. Shared epochs are trained twice only if A's run had passed
them without storing a state before B started; B then trains them again, from the nearest stored
state.
"""

import json
import random
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from mixup_core.store.bucket import Bucket
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from mixup_core.store.json_records import parse_note
from mixup_core.store.local_files import make_private_folder
from mixup_core.store.wanted import wanted_name
from sweeps.leasing.lease import Lease

_FOLDER = "claims"
_DIGITS = 16
"""Number of first digits of a stage key in the files of claims. If two keys begin with the same
digits, a driver only waits longer than it must."""
_END = "."
"""Character that marks, in a `.planned` file, the key of a run's last stage."""
_LOOK_EVERY, _LOOK_EVERY_IN_A_BUCKET = 0.5, 2.0
"""Seconds between two checks of a stage that another driver has claimed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """The stages (first epochs of runs) that running drivers have reserved.

    A stage is listed by the first 16 digits of its key.
    """

    trained: frozenset[str] = frozenset()
    """Stages that a driver is training."""
    ends: frozenset[str] = frozenset()
    """Last stage of each run in training."""
    used: frozenset[str] = frozenset()
    """Stages whose states must be kept: runs will start from them, or learn from them as
    teachers.
    """
    removed: frozenset[str] = frozenset()
    """Stages whose states are being deleted."""
    plans: tuple[frozenset[str], ...] = ()
    """All stages of the unfinished runs, one set per driver. A dot follows the key of the last
    stage of a run."""
    num_drivers: int = 0
    """Number of running drivers that have written claims."""

    def trains(self, key: str) -> bool:
        """Return True if a driver is training the stage with this key."""
        return key[:_DIGITS] in self.trained

    def removes(self, key: str) -> bool:
        """Return True if a driver is deleting the state (checkpoint) of the stage with this key."""
        return key[:_DIGITS] in self.removed

    def needs(self, key: str) -> bool:
        """Return True if a driver trains the stage with this key or needs its checkpoint."""
        return self.trains(key) or key[:_DIGITS] in self.used

    def passes(self, key: str) -> bool:
        """Return True if an unfinished run of a driver has this stage and continues after it."""
        return any(key[:_DIGITS] in plan for plan in self.plans)

    def needed_of(self, stages: Sequence[str]) -> frozenset[int]:
        """Return the epochs of a run, counted from 1, after which other drivers need its state.

        Args:
            stages: Stage keys of the run, one per epoch.
        """
        short = [stage[:_DIGITS] for stage in stages]
        needed = {epoch for epoch, stage in enumerate(short, 1) if stage in self.used}
        for plan in self.plans:
            found = [e for e, s in enumerate(short, 1) if s in plan or f"{s}{_END}" in plan]
            if found and (found[-1] < len(stages) or short[-1] in plan):
                needed.add(found[-1])
        return frozenset(needed)

    def to_ask_for(self, stages: Sequence[str]) -> tuple[str, ...]:
        """Return the key of the stage whose state another driver must store for a run.

        Of the run's stages that other drivers are training, it is the one with the most epochs.

        Args:
            stages: Stage keys of the run, one per epoch.

        Returns:
            A tuple with this key alone. It is empty if no other driver trains a stage of the run,
                or if one trains the run to its end, so that nothing is left to continue.
        """
        shared = [stage for stage in stages if self.trains(stage)]
        ends_alike = shared[-1:] == [*stages[-1:]] and shared[-1][:_DIGITS] in self.ends
        return () if ends_alike else tuple(shared[-1:])


@dataclass(frozen=True, kw_only=True, slots=True)
class Granted:
    """Permission to train a run: its start epoch, and the epochs after which to store its state."""

    start: int
    """Epoch from whose stored state the training continues; 0 to train from the beginning."""
    keep: frozenset[int]
    """Epochs, counted from 1, after which a state must be stored for other drivers."""


@dataclass(kw_only=True)
class Claims:
    """Reserves stages for one driver by files in a store, and reads what other drivers reserve."""

    store: Store
    study: str
    token: int
    """Number of the driver's lease."""
    clock: Callable[[], float] = time.monotonic
    _trained: dict[str, Sequence[str]] = field(default_factory=dict)
    """Keys of the stages that this driver is training, by key of their run."""
    _starts: dict[str, Sequence[str]] = field(default_factory=dict)
    """Key of the stage that each run in training starts from, by run key; an empty sequence if it
    starts at epoch 0."""
    _used: dict[str, Sequence[str]] = field(default_factory=dict)
    _planned: dict[str, "array[int]"] = field(default_factory=dict)
    """First digits of the stage keys of each unfinished run, as integers, by run key."""
    _num_listed: int = 0
    """Number of runs in this driver's `.planned` file, as last written."""
    _num_lists: int = 0
    """Number of times that the `.planned` file was written; 0 if it does not exist."""
    _removed: Sequence[str] = ()
    _again_at: dict[str, float] = field(default_factory=dict)
    """Time at which to check again, by key of each run that another driver trains."""
    _plans: dict[str, tuple[object, frozenset[str]]] = field(default_factory=dict)
    """Version and stages of the `.planned` files of other drivers, as last read, by study."""
    _is_outdated: bool = False
    _is_beside_others: bool = False
    """True if other drivers were alive when their claims were last read."""

    def expect(self, runs: Mapping[str, tuple[Sequence[str], Collection[str]]]) -> None:
        """Announce runs that this driver will train, and ask other drivers to store shared states.

        Args:
            runs: For each run key, two collections of stage keys. First: all stages of the run, one
                per epoch. Second: stages of the run or of its teacher whose states this driver
                needs until the run ends.
        """
        if not runs:
            return
        for run, (stages, needed) in runs.items():
            self._planned[run] = array("Q", (int(stage[:_DIGITS], 16) for stage in stages))
            self._used[run] = tuple(needed)
        self._write_plan()
        self._write()
        others = self.of_others()
        if others.trained:
            for stages, needed in runs.values():
                for stage in {*filter(others.trains, needed), *others.to_ask_for(stages)}:
                    self.want(stage)

    def train(
        self, run: str, stages: Sequence[str], start: Callable[[bool], int]
    ) -> Granted | None:
        """Reserve the stages that a run still has to train, so that no other driver trains them.

        Args:
            run: Key of the run.
            stages: All stage keys of the run, one per epoch.
            start: Function that returns the epoch of the run's latest stored state, where training
                would start. Its argument is True if the function must read the store again, because
                another driver may have stored or deleted states.

        Returns:
            The epoch to start from, and the epochs whose states must be stored. None while another
                driver trains one of these stages or deletes a state that the run needs: call again
                later.
        """
        if self.clock() < self._again_at.get(run, 0.0):
            return None
        is_to_ask = run in self._again_at or self._is_beside_others
        epoch, others = self._claim(run, stages, start(is_to_ask))
        if others.num_drivers and not is_to_ask:
            epoch, others = self._claim(run, stages, start(True))
        needed = (*self._used.get(run, ()), *self._starts[run])
        if not any(map(others.trains, stages[epoch:])) and not any(map(others.removes, needed)):
            self._again_at.pop(run, None)
            return Granted(start=epoch, keep=others.needed_of(stages))
        del self._trained[run], self._starts[run]
        self._write()
        for stage in others.to_ask_for(stages[epoch:]):
            self.want(stage)
        wait = _LOOK_EVERY_IN_A_BUCKET if isinstance(self.store.files, Bucket) else _LOOK_EVERY
        self._again_at[run] = self.clock() + wait * random.uniform(0.5, 1.5)  # noqa: S311
        return None

    def _claim(self, run: str, stages: Sequence[str], start: int) -> tuple[int, Claimed]:
        """Claim the stages after epoch `start`; return `start` and the claims of other drivers."""
        self._trained[run] = stages[start:]
        self._starts[run] = stages[start - 1 : start] if 0 < start < len(stages) else ()
        self._write()
        return start, self.of_others()

    def want(self, stage: str) -> None:
        """Ask the driver that trains a stage to store the state (checkpoint) at its end.

        Args:
            stage: Key of the stage.
        """
        self.store.files.create(wanted_name(stage), b"")

    def remove(self, stages: Sequence[str]) -> tuple[str, ...]:
        """Announce that states will be deleted; return the keys of those that can be deleted.

        A state cannot be deleted if another driver trains its stage, uses the state now, or will
        train a run that continues after the stage.

        Args:
            stages: Keys of the stages whose states are to be deleted.
        """
        self._removed = stages
        self._write()
        others = self.of_others()
        return tuple(stage for stage in stages if not (others.needs(stage) or others.passes(stage)))

    def end(self, run: str) -> None:
        """Withdraw this driver's claims (reserved stages) for a run; `refresh` writes the change.

        Args:
            run: Key of the run.
        """
        self._is_outdated |= run in self._trained or run in self._planned
        for noted in (self._trained, self._starts, self._used, self._planned):
            noted.pop(run, None)

    def refresh(self) -> None:
        """Write this driver's reserved stages to the store again if `end` has withdrawn some."""
        if self._is_outdated:
            self._write()

    def of_others(self) -> Claimed:
        """Return the stages that the running drivers of other studies have reserved."""
        others = read_claims(self.store, but=self.study, plans=self._plans)
        self._is_beside_others = others.num_drivers > 0
        return others

    def close(self) -> None:
        """Delete this driver's claims (reserved stages) from the store."""
        for name in (_name(self.study), _plan_name(self.study)):
            with suppress(StoreError, OSError):
                self.store.files.remove(name)

    def _write(self) -> None:
        if 2 * len(self._planned) < self._num_listed:
            self._write_plan()
        content = {
            "token": self.token,
            "planned": self._num_lists,
            "trained": _short(self._trained.values()),
            "ends": _short(stages[-1:] for stages in self._trained.values()),
            "used": _short([*self._used.values(), *self._starts.values()]),
            "removed": _short([self._removed]),
        }
        self._is_outdated = False
        _put(self.store, _name(self.study), json.dumps(content).encode())

    def _write_plan(self) -> None:
        """Write the `.planned` file; other drivers read it again when its version changes."""
        planned = self._planned.values()
        passed = {f"{stage:0{_DIGITS}x}" for stages in planned for stage in stages[:-1]}
        last = {f"{stages[-1]:0{_DIGITS}x}{_END}" for stages in planned}
        self._num_listed = len(self._planned)
        self._num_lists += 1
        _put(self.store, _plan_name(self.study), "\n".join(sorted(passed | last)).encode())


def read_claims(
    store: Store,
    *,
    but: str | None = None,
    plans: dict[str, tuple[object, frozenset[str]]] | None = None,
) -> Claimed:
    """Return the stages that the running drivers of a store have reserved.

    Args:
        store: The store.
        but: Study whose claims are left out; None to include all.
        plans: Cache of the files `claims/<study>.planned`, updated in place. For each study it has
            a pair: the version of the file, and the stages of unfinished runs. A file is read again
            if its version (lease number, number of writes) has changed. None: read no such file.
    """
    found: dict[str, set[str]] = {p: set() for p in ("trained", "ends", "used", "removed")}
    live: dict[str, tuple[object, object]] = {}
    for study, note in _notes(store):
        if study != but and _lives(store, study, note):
            live[study] = (note.get("token"), note.get("planned"))
            for part, keys in found.items():
                listed = note.get(part)
                if isinstance(listed, list):
                    keys |= {key for key in listed if isinstance(key, str)}
    if plans is not None:
        _update(plans, {study: version for study, version in live.items() if version[1]}, store)
    return Claimed(
        **{part: frozenset(keys) for part, keys in found.items()},
        plans=tuple(plan for _, plan in (plans or {}).values()),
        num_drivers=len(live),
    )


def _update(
    plans: dict[str, tuple[object, frozenset[str]]], live: Mapping[str, object], store: Store
) -> None:
    """Read the `.planned` files that have changed; remove those of ended drivers from the cache."""
    for study in plans.keys() - live.keys():
        del plans[study]
    names = {
        _plan_name(study): study
        for study, version in live.items()
        if study not in plans or plans[study][0] != version
    }
    for name, content in store.files.read_present(sorted(names)):
        if isinstance(content, bytes):
            stages = frozenset(content.decode("ascii", errors="replace").split())
            plans[names[name]] = (live[names[name]], stages)


def _notes(store: Store) -> Iterator[tuple[str, Mapping[str, object]]]:
    names = sorted(name for name in store.files.names(_FOLDER) if name.endswith(".json"))
    for name, content in store.files.read_present(names):
        note = parse_note(content)
        if note is not None:
            yield name.removeprefix(f"{_FOLDER}/").removesuffix(".json"), note


def _lives(store: Store, study: str, note: Mapping[str, object]) -> bool:
    """Return True if the driver that wrote a study's claims still holds its lease."""
    try:
        return Lease.lives(store, study, note.get("token"))
    except ValueError:  # not the name of a study: a file of another program
        return False


def _put(store: Store, name: str, content: bytes) -> None:
    """Write a file of claims to the store.

    In a folder the file is not synced to disk, because after a crash it is invalid anyway.
    """
    if isinstance(store.files, Bucket):
        store.files.write(name, content)
        return
    path = store.files.root / name
    make_private_folder(path.parent, store.files.root)
    beside = path.with_name(f"{path.name}.tmp")
    beside.unlink(missing_ok=True)  # left by a killed driver, or a link or pipe
    with beside.open("xb") as file:
        file.write(content)
    beside.replace(path)


def _short(parts: Iterable[Sequence[str]]) -> list[str]:
    return sorted({key[:_DIGITS] for keys in parts for key in keys})


def _name(study: str) -> str:
    return f"{_FOLDER}/{study}.json"


def _plan_name(study: str) -> str:
    return f"{_FOLDER}/{study}.planned"
