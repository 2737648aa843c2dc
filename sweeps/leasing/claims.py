"""Claims of drivers, not of study files: runs that a live driver trains, and states it needs.

    claims/<run key>/<study>.<token>    the driver with this lease trains this run; empty
    uses/<study>.json                   stages whose states this driver needs; prune keeps them

A driver first creates its claim of a run and then looks for claims of other live drivers. So if
two drivers claim a run at the same time, at least one sees the other; it withdraws and tries again
later. A claim counts while its driver has its lease, so it is never renewed. A start costs the same
for any number of runs, epochs and slots.

Only whole runs are claimed. If runs of two live drivers share their first epochs, both drivers may
train these epochs; the numbers are equal, and the first ones stored are kept.
"""

import json
import random
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from mixup_core.store.files import Bucket
from mixup_core.store.json_records import Key, Ordinal, record_in_note
from mixup_core.store.local_files import share
from sweeps.leasing.lease import Lease

_DIGITS = 16
"""First digits of a stage key in `uses/`. Two keys with equal ones only keep a state too long."""
_LOOK_EVERY, _LOOK_EVERY_IN_A_BUCKET = 0.5, 2.0
"""Seconds between two looks at a run that another driver trains."""
_BELIEVED = 10.0
"""Seconds for which a driver that was seen alive is not looked at again."""
_TRIES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class _Uses:
    token: Ordinal
    stages: tuple[Key, ...]


@dataclass(kw_only=True)
class Claims:
    """The claims of one driver."""

    store: Store
    study: str
    token: int
    """Number of the driver's lease."""
    clock: Callable[[], float] = time.monotonic
    _trained: set[str] = field(default_factory=set)
    _used: set[str] = field(default_factory=set)
    _again_at: dict[str, float] = field(default_factory=dict)
    """Time at which to look again, by key of each run that another driver trains."""
    _alive_until: dict[tuple[str, int], float] = field(default_factory=dict)

    def use(self, stages: Iterable[str]) -> None:
        """Keep the states of these stages (keys) from `store prune` until this driver ends."""
        new = {stage[:_DIGITS] for stage in stages} - self._used
        if new:
            self._used |= new
            uses = _Uses(token=self.token, stages=tuple(sorted(self._used)))
            self.store.files.write(_uses(self.study), json.dumps(asdict(uses)).encode())

    def take(self, run: str) -> bool:
        """Claim a run by its key; return False while another driver trains it: try again later."""
        if self.clock() < self._again_at.get(run, 0.0):
            return False
        self._trained.add(run)
        self._create(self._name(run))
        if any(self._lives(*claim) for claim in self._others(run)):
            self.end(run)
            is_far = isinstance(self.store.files, Bucket)
            wait = _LOOK_EVERY_IN_A_BUCKET if is_far else _LOOK_EVERY
            self._again_at[run] = self.clock() + wait * random.uniform(0.5, 1.5)  # noqa: S311
            return False
        self._again_at.pop(run, None)
        return True

    def end(self, run: str) -> None:
        """Withdraw the claim of a run, if there is one."""
        if run in self._trained:
            self._trained.remove(run)
            self._remove(self._name(run))

    def close(self) -> None:
        """Withdraw all claims."""
        with suppress(StoreError, OSError):
            for run in tuple(self._trained):
                self.end(run)
            self.store.files.remove(_uses(self.study))

    def _name(self, run: str) -> str:
        return f"claims/{run}/{self.study}.{self.token}"

    def _create(self, name: str) -> None:
        """Create an empty file; in a folder it is not synced, because a crash ends the claim."""
        files = self.store.files
        if isinstance(files, Bucket):
            files.write(name, b"")
            return
        path = files.root / name
        for tries_left in reversed(range(_TRIES)):  # another driver may remove the empty folder
            try:
                for folder in (files.root / "claims", path.parent):
                    if not folder.is_dir():
                        folder.mkdir(mode=0o700, exist_ok=True)
                        share(folder)
                path.touch(mode=0o600)
                share(path)
            except (FileNotFoundError, PermissionError):  # also before it is shared
                if not tries_left:
                    raise
                time.sleep(0.01)
            else:
                return

    def _remove(self, name: str) -> None:
        files = self.store.files
        with suppress(StoreError, OSError):  # a claim that stays ends with the driver
            files.remove(name)
            if not isinstance(files, Bucket):
                (files.root / name).parent.rmdir()  # fails if another driver claims the run, too

    def _others(self, run: str) -> list[tuple[str, int, str]]:
        """Return study, token and file of the claims of other drivers on a run."""
        own, found = self._name(run), []
        for name in self.store.files.names(f"claims/{run}"):
            study, _, token = Path(name).name.rpartition(".")
            if name != own and token.isdecimal():
                found.append((study, int(token), name))
        return found

    def _lives(self, study: str, token: int, name: str) -> bool:
        """Return True if the driver of a claim is alive; otherwise remove the claim."""
        if self.clock() < self._alive_until.get((study, token), 0.0):
            return True
        with suppress(ValueError):  # not the name of a study: a file of another program
            if Lease.lives(self.store, study, token):
                self._alive_until[study, token] = self.clock() + _BELIEVED
                return True
        self._remove(name)
        return False


def unused(store: Store, stages: Sequence[str], own: Collection[str]) -> tuple[str, ...]:
    """Return those of some stages (keys) whose state no live driver of another study needs.

    If the list of a live driver cannot be read, that driver may need any of them.
    """
    used: set[str] = set()
    names = (name for name in store.files.names("uses") if name.endswith(".json"))
    for name, content in store.files.read_present(sorted(names)):
        study, uses = Path(name).stem, record_in_note(_Uses, name, content)
        with suppress(ValueError):  # not the name of a study: a file of another program
            if study in own:
                continue
            if uses is None and Lease.current(store, study) is not None:
                return ()
            if uses is not None and Lease.lives(store, study, uses.token):
                used |= set(uses.stages)
    return tuple(stage for stage in stages if stage[:_DIGITS] not in used)


def _uses(study: str) -> str:
    return f"uses/{study}.json"
