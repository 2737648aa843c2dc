"""Leases of studies, claims of their runs, and requests to stop: how drivers share a store.

    claims/<run key>.<study>.<token>    the driver with this lease trains this run; empty
    uses/<study>.json                   stages whose states this driver needs; prune keeps them
    stops/<study>.json                  the driver to stop, by the token of its lease, and how

A driver first creates its claim of a run and then looks for claims of other live drivers. So if
two drivers claim a run at the same time, at least one sees the other; it withdraws and tries again
later. A claim counts while its driver has its lease, so it is never renewed. Only whole runs are
claimed: two live drivers may both train first epochs that their runs share; the numbers are equal,
and the first ones stored are kept.
"""

import json
import random
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from mixup_core.store.files import Bucket
from mixup_core.store.json_records import Key, Ordinal, record_in_note
from sweeps.leasing.bucket_lease import BucketLease
from sweeps.leasing.folder_lease import FolderLease
from sweeps.leasing.holders import Heartbeat, Holder, checked


class Lease:
    """The exclusive right of this process to train a study (to be its driver).

    The lease ends with `release`, at the end of its `with` block, or when this process ends.
    """

    def __init__(self, held: FolderLease | BucketLease) -> None:
        self._held = held
        self.holder = held.holder
        """The stored record of this process as the driver of the study."""
        self.token = held.holder.token
        """Number of this lease; later ones are larger."""
        self.is_held = held.is_held
        self.write_progress = held.write_progress
        self.release = held.release

    @classmethod
    def acquire(cls, store: Store, study: str, command: str) -> Self:
        """Acquire the lease; in a bucket, wait up to 30 s if a driver elsewhere was killed."""
        return cls(_kind(store)(store.files, study, command))

    @staticmethod
    def current(store: Store, study: str) -> Holder | None:
        """Return the driver that trains a study now; None also if its record is damaged."""
        return _kind(store).current(store.files, study)

    @staticmethod
    def lives(store: Store, study: str, token: object) -> bool:
        """Return True if the driver with this token is alive; also if its record is damaged."""
        return _kind(store).lives(store.files, study, token)

    @staticmethod
    def latest(store: Store, study: str) -> Holder | None:
        """Return the last driver, which may have ended; None also if its record is damaged."""
        return _kind(store).latest(store.files, study)

    @staticmethod
    def cut_off(store: Store, study: str) -> Heartbeat | None:
        """Return the last report of a driver that was killed in training; None in a bucket."""
        return _kind(store).cut_off(store.files, study)

    def require_held(self) -> None:
        """Raise `StudyLostError` if another driver has taken over the study."""
        if self._held.is_lost:
            raise self._held.lost()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
        if self._held.is_lost:
            raise self._held.lost() from error


def read_progress(store: Store, study: str) -> Heartbeat | None:
    """Return the newest report of the living driver of a study; None without one."""
    return _kind(store).progress(store.files, study)


def _kind(store: Store) -> type[FolderLease] | type[BucketLease]:
    return BucketLease if isinstance(store.files, Bucket) else FolderLease


Stop = Literal["finish", "now"]
"""Ways to stop a driver. `finish`: start no more runs, but finish the runs in training. `now`:
interrupt the runs in training too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    token: Ordinal
    how: Stop


def ask_to_stop(store: Store, study: str, holder: Holder, how: Stop) -> None:
    """Ask the driver of a study to stop; it reads such requests about once a second."""
    request = _Request(token=holder.token, how=how)
    store.files.write(_name(study), json.dumps(asdict(request)).encode())


def asked_to_stop(store: Store, study: str, holder: Holder) -> Stop | None:
    """Return how a driver was asked to stop; None if there is no request."""
    for name, content in store.files.read_present([_name(study)]):
        request = record_in_note(_Request, name, content)
        if request is not None and request.token == holder.token:
            return request.how
    return None


def _name(study: str) -> str:
    return f"stops/{checked(study)}.json"


_DIGITS = 16
"""First digits of a stage key in `uses/`. Two keys with equal ones only keep a state too long."""
_LOOK_EVERY, _LOOK_EVERY_IN_A_BUCKET = 0.5, 2.0
"""Seconds between two looks at a run that another driver trains."""
_BELIEVED = 10.0
"""Seconds for which a driver that was seen alive is not looked at again."""


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
        # Order matters: write the claim, then look for others. Otherwise two drivers could both see
        # none and train the run twice; tests/sweeps/leasing/test_lease.py fails.
        self.store.files.write(self._name(run), b"")
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
        with suppress(StoreError, OSError):
            for run in tuple(self._trained):
                self.end(run)
            self.store.files.remove(_uses(self.study))

    def _name(self, run: str) -> str:
        return f"claims/{run}.{self.study}.{self.token}"

    def _remove(self, name: str) -> None:
        with suppress(StoreError, OSError):  # a claim that stays ends with the driver
            self.store.files.remove(name)

    def _others(self, run: str) -> list[tuple[str, int, str]]:
        """Return study, token and file of the claims of other drivers on a run."""
        claims = []
        for name in self.store.files.names("claims"):
            match Path(name).name.split("."):
                case [claimed, study, token] if claimed == run and token.isdecimal():
                    claims.append((study, int(token), name))
        return [claim for claim in claims if claim[2] != self._name(run)]

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
    """Return stages whose state no live driver of another study needs; none if unknown."""
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
