"""States that are written in a thread while training goes on: order, errors, interrupts, kills."""

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreFullError, spell_file_error
from mixup_core.store.files import Folder
from sweeps.running import storing as storing_module
from sweeps.running.assignment import Assignment
from sweeps.running.attempt import Driver, attempt
from sweeps.running.storing import Storing
from tests import toy

WALK = toy.ToyConfig(epochs=6, drift=0.5)
SHORT_EPOCH = 1e-9
"""Seconds of an epoch that is short compared with storing its state."""


@pytest.fixture(autouse=True)
def _each_epoch_in_a_thread(toy_problem: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing_module, "STORE_AT_LEAST_EVERY", 0.0)
    monkeypatch.setattr(storing_module, "_STORE_COST_SHARE", 1e9)
    monkeypatch.setattr(storing_module, "_UNKNOWN_COST", 1.0)


def _assignment(store: Store, keep: frozenset[int] = frozenset()) -> Assignment:
    return Assignment(config=WALK, keep=keep, keep_final_state=True, store=store.url)


def _train(store: Store, *, keep: frozenset[int] = frozenset(), pause: float = 0.0) -> None:
    storing = Storing(_assignment(store, keep), "cpu")
    walk = storing.resume(lambda: toy.start(WALK, None, "cpu"))
    with storing:
        for _ in iter(walk):
            storing.add(walk, SHORT_EPOCH)
            time.sleep(pause)


def _attempt(store: Store) -> dict[str, Any]:
    return attempt(_assignment(store), Driver(lambda _: None), {})


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Return an event for which every state written in a thread waits."""
    gate, write = threading.Event(), Folder.write

    def waiting(folder: Folder, name: str, data: bytes) -> None:
        if threading.current_thread() is not threading.main_thread():
            gate.wait()
        write(folder, name, data)

    monkeypatch.setattr(Folder, "write", waiting)
    yield gate
    gate.set()


def _fail_in_thread(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    write = Folder.write

    def failing(folder: Folder, name: str, data: bytes) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise error
        write(folder, name, data)

    monkeypatch.setattr(Folder, "write", failing)


def test_training_continues_during_a_write_and_only_one_state_is_written_at_a_time(
    tmp_path: Path, gate: threading.Event
) -> None:
    store = Store(str(tmp_path))
    storing = Storing(_assignment(store), "cpu")
    walk = storing.resume(lambda: toy.start(WALK, None, "cpu"))
    with storing:
        epochs = iter(walk)
        for _ in range(4):
            next(epochs)
            storing.add(walk, SHORT_EPOCH)
        assert len(walk.records) == 4, "the first state is not written yet"
        assert storing.take_rows() == []
        assert not store.keys()
        gate.set()
    assert [row["epoch"] for row in storing.take_rows()] == [0]
    assert dict(store.keys()) == {stage_keys(WALK)[0]: True}


def test_background_writes_store_the_same_records_and_states_as_blocking_writes(
    tmp_path: Path,
) -> None:
    beside, waiting = Store(str(tmp_path)), Store(str(tmp_path / "waiting"))
    _train(beside, keep=frozenset({2, 4}))
    alone = Storing(_assignment(waiting, frozenset({2, 4})), "cpu")
    walk = alone.resume(lambda: toy.start(WALK, None, "cpu"))
    for _ in iter(walk):
        alone.add(walk, SHORT_EPOCH)
    assert beside.keys() == waiting.keys()
    for ours, theirs in zip(beside.stages(), waiting.stages(), strict=True):
        assert (ours.key, ours.records, ours.state) == (theirs.key, theirs.records, theirs.state)
        assert beside.states.read(ours) == waiting.states.read(theirs)


def test_a_stage_that_other_runs_need_is_stored_before_training_continues(
    tmp_path: Path, gate: threading.Event
) -> None:
    store, keys = Store(str(tmp_path)), stage_keys(WALK)
    storing = Storing(_assignment(store, frozenset({2})), "cpu")
    walk = storing.resume(lambda: toy.start(WALK, None, "cpu"))
    with storing:
        epochs = iter(walk)
        next(epochs)
        storing.add(walk, SHORT_EPOCH)
        next(epochs)
        threading.Timer(0.2, gate.set).start()
        storing.add(walk, SHORT_EPOCH)
        assert dict(store.keys()) == {keys[0]: True, keys[1]: True}
        assert [row["epoch"] for row in storing.take_rows()] == [0, 1]


@pytest.mark.parametrize(
    "error", [StoreFullError("disk full: x cannot be written"), OSError(30, "Read-only", "x")]
)
def test_a_write_error_in_the_thread_fails_the_run_with_the_usual_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    _fail_in_thread(monkeypatch, error)
    beside = _attempt(Store(str(tmp_path)))["failure"]
    monkeypatch.undo()

    def failing(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(Folder, "write", failing)
    waiting = _attempt(Store(str(tmp_path / "waiting")))["failure"]
    assert (beside["kind"], beside["message"]) == (waiting["kind"], waiting["message"])
    told = spell_file_error(error) if isinstance(error, OSError) else str(error)
    assert told in beside["message"]
    assert (beside["trace"], waiting["trace"]) == ("", "")


def test_an_interrupt_does_not_wait_for_a_hanging_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    monkeypatch.setattr(storing_module, "_INTERRUPT_PATIENCE", 0.1)
    store = Store(str(tmp_path))
    storing = Storing(_assignment(store), "cpu")
    walk = storing.resume(lambda: toy.start(WALK, None, "cpu"))

    def train() -> NoReturn:
        with storing:
            next(iter(walk))
            storing.add(walk, SHORT_EPOCH)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    gate.set()
    give_up_at = time.monotonic() + 30
    while not store.keys() and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert dict(store.keys()) == {stage_keys(WALK)[0]: True}, "the process lives on, and its thread"


_PHASES = ("mkstemp", "fsync", "replace", "hardlink_to", "unlink")


@pytest.mark.parametrize("phase", _PHASES)
def test_a_kill_at_any_step_of_a_write_loses_no_recorded_state(tmp_path: Path, phase: str) -> None:
    key = stage_keys(WALK)[-1]
    _train(undisturbed := Store(str(tmp_path / "undisturbed")))
    whole = undisturbed.read(key)
    assert whole is not None
    for kills in itertools.count():
        store = Store(str(tmp_path / str(kills)))
        if not _killed_at(phase, kills // 2, kills % 2 == 1, store):
            break
        for stage in store.stages():
            assert store.states.read(stage) is not None, "a record claims this state"
            assert list(stage.records) == list(whole.records[: stage.epochs])
        _train(store)
        ended = store.read(key)
        assert ended is not None
        assert (ended.records, ended.state) == (whole.records, whole.state)
        assert store.verify(stale_after=0.0) == ()
    assert kills >= 4, "the first and the last write were killed"


def _killed_at(phase: str, number: int, after: bool, store: Store) -> bool:
    """Train a run in a child process that is killed at a step; return False if it ended before."""
    if (child := os.fork()) == 0:
        counted = itertools.count()
        _interpose(phase, lambda: next(counted) == number, after=after)
        try:
            _train(store, pause=0.02)  # so that most epochs are stored
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _interpose(phase: str, is_time: Callable[[], bool], *, after: bool) -> None:
    import tempfile

    owner: Any = {"mkstemp": tempfile, "fsync": os}.get(phase, Path)
    real = getattr(owner, phase)

    def step(*arguments: Any, **options: Any) -> Any:
        now = is_time()
        if now and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = real(*arguments, **options)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, phase, step)
