"""Claims: which stages a live driver trains, starts from or removes, so that no other interferes.

    claims/<study>.json     the claims of the driver of one study; void once its lease is
    claims/<study>.planned  every stage of the runs that this driver has not finished
    wanted/<stage key>      a stage that another driver waits for: whoever trains it stores it

Every driver writes its own note first and reads those of the others then: of two that claim the
same stage at the same time at least one sees the other. Whoever sees another's claim gives its own
up, and tries again a little later. A claim lives as long as the lease of its driver, which a
folder's locks or a bucket's beats prove, so nothing else has to be renewed.

By the same order a stage from which two drivers' runs part is stored with its state. The driver
that joins while a run is in training asks for the stage (`wanted/`); the driver that starts a run
later reads the plans of the others and keeps it. Only epochs that had passed without a state when
a driver joined are trained again, by one driver, from the nearest state.
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
from mixup_core.store.local_files import make_private_folder
from mixup_core.store.notes import parse_note
from mixup_core.store.wanted import wanted_name
from sweeps.leasing.lease import Lease

_FOLDER = "claims"
_DIGITS = 16
"""Characters of a stage key in a note; two that agree in them cost a wait and nothing else."""
_END = "."
"""Stands behind the last stage of a run in a plan."""
_LOOK_EVERY, _LOOK_EVERY_IN_A_BUCKET = 0.5, 2.0
"""Seconds between two looks at a stage that another driver has claimed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """The claims of live drivers, as the first digits of stage keys."""

    trained: frozenset[str] = frozenset()
    """Stages that are being trained."""
    ends: frozenset[str] = frozenset()
    """The last stages of the runs in training."""
    used: frozenset[str] = frozenset()
    """Stages that a run will start or learn from."""
    removed: frozenset[str] = frozenset()
    """Stages whose state is being removed."""
    plans: tuple[frozenset[str], ...] = ()
    """By driver: every stage of the runs that it has not finished; a last one ends in a point."""
    num_drivers: int = 0
    """Other live drivers that have written a note."""

    def trains(self, key: str) -> bool:
        """Return whether a stage is being trained."""
        return key[:_DIGITS] in self.trained

    def removes(self, key: str) -> bool:
        """Return whether the state of a stage is being removed."""
        return key[:_DIGITS] in self.removed

    def needs(self, key: str) -> bool:
        """Return whether the state of a stage must stay."""
        return self.trains(key) or key[:_DIGITS] in self.used

    def passes(self, key: str) -> bool:
        """Return whether a run that is planned or in training goes on behind a stage."""
        return any(key[:_DIGITS] in plan for plan in self.plans)

    def needed_of(self, stages: Sequence[str]) -> frozenset[int]:
        """Return the epochs of a run whose state other drivers need.

        Args:
            stages: Its stages, epoch by epoch.
        """
        short = [stage[:_DIGITS] for stage in stages]
        needed = {epoch for epoch, stage in enumerate(short, 1) if stage in self.used}
        for plan in self.plans:
            found = [e for e, s in enumerate(short, 1) if s in plan or f"{s}{_END}" in plan]
            if found and (found[-1] < len(stages) or short[-1] in plan):
                needed.add(found[-1])
        return frozenset(needed)

    def to_ask_for(self, stages: Sequence[str]) -> tuple[str, ...]:
        """Return the last of the stages that another driver trains, if its run goes on there.

        Args:
            stages: The stages of a run, epoch by epoch.
        """
        shared = [stage for stage in stages if self.trains(stage)]
        ends_alike = shared[-1:] == [*stages[-1:]] and shared[-1][:_DIGITS] in self.ends
        return () if ends_alike else tuple(shared[-1:])


@dataclass(frozen=True, kw_only=True, slots=True)
class Granted:
    """Leave to train a run."""

    start: int
    """Epochs after which the training begins; their state is stored."""
    keep: frozenset[int]
    """Epochs whose state other drivers need."""


@dataclass(kw_only=True)
class Claims:
    """The claims of one driver."""

    store: Store
    study: str
    token: int
    """Token of the lease that the driver holds."""
    clock: Callable[[], float] = time.monotonic
    _trained: dict[str, Sequence[str]] = field(default_factory=dict)
    """Key of a run to the stages that this driver trains for it."""
    _starts: dict[str, Sequence[str]] = field(default_factory=dict)
    """Key of a run in training to the stage that it starts from, if there is one."""
    _used: dict[str, Sequence[str]] = field(default_factory=dict)
    _planned: dict[str, "array[int]"] = field(default_factory=dict)
    """Key of a run that has not ended to the first digits of its stages, as a number each."""
    _num_listed: int = 0
    """Runs in the file of planned stages."""
    _num_lists: int = 0
    """Times that this file was written; 0: there is none."""
    _removed: Sequence[str] = ()
    _again_at: dict[str, float] = field(default_factory=dict)
    """Key of a run that another driver trains to the time of the next look at it."""
    _plans: dict[str, tuple[object, frozenset[str]]] = field(default_factory=dict)
    """Study of another driver to the version of its plan and the plan, as last read."""
    _is_outdated: bool = False
    _is_beside_others: bool = False
    """True if other drivers lived at the last look."""

    def expect(self, runs: Mapping[str, tuple[Sequence[str], Collection[str]]]) -> None:
        """Claim what runs will train and need, until they end; ask others for the shared part.

        Args:
            runs: Key of a run to all its stages, epoch by epoch, and to those stages, of this run
                or its teacher, whose state this driver needs.
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
        """Claim what a run has left to train.

        Args:
            run: Its key.
            stages: All its stages, epoch by epoch.
            start: Returns the epochs after which the training begins; the argument says whether
                the store must be asked, since another driver may have stored or removed states.

        Returns:
            Where to start and what to keep; None while another driver is at the same stages.
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
        """Write a claim, and return its start with what others have claimed then."""
        self._trained[run] = stages[start:]
        self._starts[run] = stages[start - 1 : start] if 0 < start < len(stages) else ()
        self._write()
        return start, self.of_others()

    def want(self, stage: str) -> None:
        """Ask the driver that trains a stage to store its state."""
        self.store.files.create(wanted_name(stage), b"")

    def remove(self, stages: Sequence[str]) -> tuple[str, ...]:
        """Claim stages whose state is to be removed; return those that no other driver needs.

        A stage on the way of a run that another driver will train is needed: the run starts there.
        """
        self._removed = stages
        self._write()
        others = self.of_others()
        return tuple(stage for stage in stages if not (others.needs(stage) or others.passes(stage)))

    def end(self, run: str) -> None:
        """Give up what was claimed for a run; others see it from the next `refresh` on."""
        self._is_outdated |= run in self._trained or run in self._planned
        for noted in (self._trained, self._starts, self._used, self._planned):
            noted.pop(run, None)

    def refresh(self) -> None:
        """Let others see what was given up."""
        if self._is_outdated:
            self._write()

    def of_others(self) -> Claimed:
        """Return the stages that live drivers of other studies have claimed."""
        others = read_claims(self.store, but=self.study, plans=self._plans)
        self._is_beside_others = others.num_drivers > 0
        return others

    def close(self) -> None:
        """Give up everything."""
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
        """Write every stage of the runs that have not ended; it is read when it has changed."""
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
    """Return the stages that live drivers have claimed.

    Args:
        store: The store.
        but: Study whose claims are left out.
        plans: What the last call has read of the plans of others, brought up to date; None: their
            plans are not read.
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
    """Read the plans that have changed and forget those of drivers that have ended."""
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
    beside.unlink(missing_ok=True)  # of a killed driver; or a link or a pipe, which others may make
    with beside.open("xb") as file:
        file.write(content)
    beside.replace(path)


def _short(parts: Iterable[Sequence[str]]) -> list[str]:
    return sorted({key[:_DIGITS] for keys in parts for key in keys})


def _name(study: str) -> str:
    return f"{_FOLDER}/{study}.json"


def _plan_name(study: str) -> str:
    return f"{_FOLDER}/{study}.planned"
