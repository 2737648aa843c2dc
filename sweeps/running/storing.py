"""Storing: decides when the stages of a run are stored, and which of them are kept."""

import fcntl
import functools
import logging
import os
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event
from types import MappingProxyType, TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from mixup_core.keys import run_key, stage_keys
from mixup_core.numeric_settings import BEGAN_IN, differences
from mixup_core.problem import Predicting, Process, StateError, problem_of
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import naming
from mixup_core.store.manifests import ADDED, EpochFacts, Stage
from sweeps.running.assignment import Assignment
from sweeps.running.trained_on import environment_of
from sweeps.state.results import TRIED, last_attempt
from sweeps.state.stages import OWNER
from sweeps.study.budget import GPUS_PER_RUN

STORE_AT_LEAST_EVERY = 20.0
"""Seconds of training after which a stage is stored even if storing it takes long."""
_SHORT_RUN = 1.0
"""A run that trains for fewer seconds in all, judged by its last epoch, stores no stage only to
resume from: training it again takes less time than starting its process."""
_STORE_COST_SHARE = 100
"""A stage is stored once training has taken this many times as long as storing a stage takes."""
_INTERRUPT_PATIENCE = 2.0
"""Seconds that an interrupted run waits for a stage that is being written."""
_THREAD_PATIENCE = 30.0
"""Seconds that a new thread has to begin."""
_UNKNOWN_COST = 0.0
"""Assumed seconds to store a state until one was measured. With 0, training waits for the first
write."""


_LOG = logging.getLogger(__name__)


class Storing:
    """Stores the stages of one run while it trains, and deletes states that are no longer needed.

    A state that is stored only to resume this run is deleted once two newer ones are stored. Inside
    the `with` block it is written in a thread if writing takes more than a hundredth of an epoch.
    An error in the thread is raised by the next method call, or at the end of the block.
    """

    def __init__(
        self,
        assignment: Assignment,
        device: str,
        place: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._assignment = assignment
        self._store = Store(assignment.store)
        self._keys = stage_keys(assignment.config)
        self._run_key = run_key(assignment.config)
        share = {GPUS_PER_RUN: f"{assignment.gpus:g}"} if assignment.gpus else {}
        self._environment = environment_of(device, assignment.config) | share | dict(place)
        self._facts: list[EpochFacts] = []
        self._rows: list[dict[str, Any]] = []
        self._own: list[int] = []  # epochs whose state is stored only to resume this run
        self.lost: list[int] = []
        """Epochs in `Assignment.keep` that another driver trained without storing the state."""
        self._num_stored = 0
        self._attempts = 1
        self._trained_since = 0.0
        self._beside = Beside[tuple[Stage, float]]()
        self._uses_thread = False
        self._cost = _UNKNOWN_COST  # seconds that storing the last state took

    def __enter__(self) -> Self:
        self._uses_thread = True
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the stage that is being written; raise the error if writing fails."""
        self._uses_thread = False
        if error is None or isinstance(error, Exception):
            self._collect()
            return
        with suppress(Exception):
            self._collect(timeout=_INTERRUPT_PATIENCE)

    def resume(self, start: Callable[[], Process]) -> Process:
        """Return the run in progress, resumed at its last intact stored stage, if any."""
        stored = self._store.read_all(self._keys)
        self._attempts += max(
            (last_attempt(stage, self._run_key) for stage in stored.values()), default=0
        )
        self._environment[TRIED] = f"{self._run_key} {self._attempts}"
        process = self._resumed(stored, start)
        kept = {epoch: stored.get(self._keys[epoch - 1]) for epoch in self._assignment.keep}
        self.lost = [
            epoch
            for epoch, stage in sorted(kept.items())
            if epoch < len(process.records) and (stage is None or stage.state is None)
        ]
        return process

    def _resumed(self, stored: Mapping[str, Stage], start: Callable[[], Process]) -> Process:
        for epoch in self._assignment.keep:
            self._claim(stored.get(self._keys[epoch - 1]))
        process = start()
        for epoch in range(len(self._keys), 0, -1):
            stage = stored.get(self._keys[epoch - 1])
            is_whole = epoch == len(self._keys) and not self._keeps(epoch)
            if stage is None or (stage.state is None and not is_whole):
                continue
            if is_whole:
                self._claim(stage)
                process.records[:] = stage.records
                self._accept(stage)
                return process
            if self._load(stage, process):
                self._note_change(stage)
                self._accept(stage)
                self._own = [
                    earlier
                    for earlier, key in enumerate(self._keys[:epoch], 1)
                    if key in stored and stored[key].environment.get(OWNER) == self._run_key
                ]
                return process
            self._store.drop_state(stage.key)
            process = start()
        return process

    def _note_change(self, stage: Stage) -> None:
        """Log and record that this process resumes a run which began in another environment."""
        before, current = stage.environment, self._environment
        earlier = [before[BEGAN_IN]] if BEGAN_IN in before else []
        if names := differences(before, current):
            text = " ".join(f"{name}={before.get(name, '')!r}" for name in names)
            earlier.append(f"epochs to {stage.epochs}: {text}")
            _LOG.warning(
                "resumed after epoch %d in another environment (before: %s; now: %s): results may "
                "differ in the last bits from those of a run in one environment",
                stage.epochs, text, " ".join(f"{name}={current.get(name, '')!r}" for name in names),
            )  # fmt: skip
        if earlier:
            self._environment[BEGAN_IN] = "; ".join(earlier)

    def _keeps(self, epoch: int) -> bool:
        is_last = epoch == len(self._keys)
        return epoch in self._assignment.keep or (is_last and self._assignment.keep_final_state)

    def add(self, process: Process, seconds: float) -> None:
        """Record a trained epoch; store its stage if it is the last, needed, or overdue."""
        self._collect(timeout=0.0)
        self._facts.append(EpochFacts(seconds=seconds, stored_at_ms=time.time_ns() // 1_000_000))
        self._trained_since += seconds
        epoch = len(process.records)
        is_final = epoch == len(self._keys)
        cost = _STORE_COST_SHARE * self._cost
        is_short = seconds * len(self._keys) < _SHORT_RUN
        interval = STORE_AT_LEAST_EVERY if is_short else min(STORE_AT_LEAST_EVERY, cost)
        if is_final or epoch in self._assignment.keep:
            self._collect()
            self._store_to_stay(process, is_final=is_final)
        elif not self._beside.is_busy and self._trained_since >= interval:
            started = time.monotonic()
            write = self._write_of(process, process.to_bytes(), is_passing=True)
            self._beside.start(functools.partial(self._store_in_passing, write, epoch, started))
            if seconds >= cost or not self._uses_thread:
                self._collect()
        else:
            return
        self._trained_since = 0.0

    def _store_to_stay(self, process: Process, *, is_final: bool) -> None:
        """Store a stage that other runs need, or the last one."""
        epoch = len(process.records)
        with_state = not is_final or self._keeps(epoch)
        # Order matters: predictions first. A kill after the last stage would leave a finished run
        # without them for good; tests/sweeps/running/test_storing.py fails.
        if is_final:
            self._store_predictions(process)
        content = process.to_bytes() if with_state or self._assignment.spare_bytes else None
        if content is not None and not with_state and len(content) > self._assignment.spare_bytes:
            content = None
        write = self._write_of(process, content, is_passing=False)
        with open_write(self._assignment.writing):
            stage = write()
            while self._claim(stage):
                stage = write()
        self._accept(stage)
        if is_final:
            self._drop_all_own()
        else:
            self._drop_superseded()

    def _store_in_passing(
        self, write: Callable[[], Stage], epoch: int, started: float
    ) -> tuple[Stage, float]:
        """Store a stage to resume from; return the stage that is stored, and the seconds taken."""
        with open_write(self._assignment.writing):
            stage = write()
        if stage.environment.get(OWNER) == self._run_key:
            self._own.append(epoch)
        self._drop_superseded()
        return stage, time.monotonic() - started

    def _write_of(
        self, process: Process, content: bytes | None, *, is_passing: bool
    ) -> Callable[[], Stage]:
        """Return a function that writes the stage of the epochs so far; training may go on."""
        return functools.partial(
            self._store.write,
            self._keys[len(process.records) - 1],
            records=tuple(process.records),
            facts=tuple(self._facts),
            environment=self._environment | ({OWNER: self._run_key} if is_passing else {}),
            state=content,
        )

    def _collect(self, *, timeout: float | None = None) -> None:
        """Accept the stage that was written in the thread; wait for it, or raise its error."""
        if (stored := self._beside.take(timeout=timeout)) is not None:
            stage, self._cost = stored
            self._accept(stage)

    def _store_predictions(self, process: Process) -> None:
        """Store the predictions of a finished run; done before the run counts as finished."""
        config, key = self._assignment.config, self._keys[-1]
        stored = self._store.read(key)
        if stored is not None and ADDED in stored.environment:
            self._store.predictions.remove([key])  # those of the archive would count as made here
        if problem_of(config).cost.prediction_bytes(config):
            content = cast(Predicting, process).predictions()
            self._store.predictions.write(key, process.records[-1], content)

    def take_rows(self) -> list[dict[str, Any]]:
        self._collect(timeout=0.0)
        rows, self._rows = self._rows, []
        return rows

    def _load(self, stage: Stage, process: Process) -> bool:
        content = self._store.states.read(stage)
        if content is None:
            return False
        try:
            process.load_bytes(content, list(stage.records))
        except StateError as error:
            self._store.states.refuse(stage, f"is refused: {error}")
            return False
        return True

    def _accept(self, stage: Stage) -> None:
        """Continue from a stored stage; another process may have stored it first."""
        new = slice(self._num_stored, None)
        for record, facts in zip(stage.records[new], stage.facts[new], strict=True):
            self._rows.append({**record.to_plain(), **asdict(facts)})
        self._facts[: stage.epochs] = stage.facts
        self._num_stored = len(stage.records)

    def _claim(self, stage: Stage | None) -> bool:
        """Keep a stage that a run stored only to resume itself; return True if it was one."""
        if stage is None or OWNER not in stage.environment:
            return False
        self._store.forget(stage.key, OWNER)
        return True

    def _drop_superseded(self) -> None:
        """Delete the resume states of this run except the newest two, in case one is damaged."""
        self._delete(self._own[:-2])
        self._own = self._own[-2:]

    def _drop_all_own(self) -> None:
        """Delete the resume states of this run, and files that killed attempts have left."""
        self._delete(self._own)
        # Listing folders takes time that grows with the store. An attempt that stored nothing died
        # at its first write; `Store.verify` finds what this left.
        if self._attempts > 1:
            self._store.clear_torn(*self._keys)

    def _delete(self, epochs: Iterable[int]) -> None:
        keys = [self._keys[epoch - 1] for epoch in epochs if epoch not in self._assignment.keep]
        stored = self._store.read_all(keys).values()
        # Another run may have stored the same stage permanently.
        own_stages = (stage for stage in stored if stage.environment.get(OWNER) == self._run_key)
        self._store.discard(*own_stages)


def read_row(row: dict[str, Any]) -> tuple[EpochRecord, EpochFacts]:
    """Return one epoch's metrics, duration and time of storing, from a report to the driver."""
    facts = EpochFacts(seconds=row["seconds"], stored_at_ms=row["stored_at_ms"])
    return EpochRecord.from_plain(row), facts


T = TypeVar("T")


class Beside(Generic[T]):
    """Runs a task in a thread, one at a time; `take` returns its result or raises its error.

    The thread does not keep the process alive.
    """

    def __init__(self) -> None:
        self._future: Future[T] | None = None

    @property
    def is_busy(self) -> bool:
        """True from the start of a task until `take` returns its result or raises its error."""
        return self._future is not None

    def start(self, task: Callable[[], T]) -> None:
        assert not self.is_busy
        future, begun = Future[T](), Event()
        try:
            start_new_thread(_run, (task, future, begun))
        except RuntimeError:  # no memory for its stack, or too many threads
            _run(task, future, begun)
        # A thread that lacks memory dies silently, and `Thread.start` would wait for it forever.
        if not begun.wait(_THREAD_PATIENCE):
            raise MemoryError("cannot allocate memory for a thread that stores a stage")
        self._future = future

    def take(self, *, timeout: float | None) -> T | None:
        """Return the result of the task; None if there is no task, or it is still running."""
        future = self._future
        if future is None or not wait([future], timeout).done:
            return None
        self._future = None
        return future.result()


def _run(task: Callable[[], T], future: Future[T], begun: Event) -> None:
    begun.set()
    try:
        future.set_result(task())
    except BaseException as error:  # raised again by `take`
        future.set_exception(error)


WRITING = "writing"
_PATIENCE = 3.0
"""Seconds that the driver waits for states that are being written."""
_LOOK_EVERY = 0.02
_NAP = 3600.0


@contextmanager
def open_write(file: str | None) -> Iterator[None]:
    """Let the driver wait for the end of the block; if it is ending, do not begin the block.

    `file` is the path of `writing`; None if the driver does not end this process.
    """
    if file is None:
        yield
        return
    lock = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        with naming(Path(file)):
            fcntl.flock(lock, fcntl.LOCK_SH)
        if not _over(file).exists():
            yield
            return
    finally:
        os.close(lock)
    while True:  # the driver ends this process in a moment
        time.sleep(_NAP)


def wait_for_writes(file: Path) -> None:
    """Wait until no worker writes a state, at most a few seconds; further writes do not begin."""
    give_up_at = time.monotonic() + _PATIENCE
    with suppress(OSError), file.open("a") as lock:
        _over(str(file)).touch()
        while time.monotonic() < give_up_at:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_LOOK_EVERY)


def _over(file: str) -> Path:
    return Path(f"{file}.over")
