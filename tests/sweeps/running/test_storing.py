"""Storing: when stages are stored and which of them are kept, without Ray."""

import dataclasses
import itertools
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.choices.models import Mlp
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.training import start
from mixup_core.keys import stage_keys
from mixup_core.predictions import Predictions
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreFullError, spell_file_error
from mixup_core.store.files import Folder
from mixup_core.store.manifests import ADDED, Stage
from mixup_core.store.prediction_store import PredictionStore
from sweeps.running import storing as storing_module
from sweeps.running.assignment import Assignment
from sweeps.running.attempt import Driver, attempt
from sweeps.running.retries import MachineFault
from sweeps.running.storing import Storing, open_write, wait_for_writes
from sweeps.state.results import read_results
from sweeps.state.stages import plan_runs
from sweeps.study.study import Run
from tests import toy
from tests.faults.launches import wait_for
from tests.filled import put
from tests.interpreters import run_python

BASE = TrainConfig(
    data=DataConfig(name="digits", num_train=100),
    model=Mlp(hidden=(8,)),
    epochs=4,
    batch_size=50,
)


@pytest.fixture(autouse=True)
def _store_every_epoch_in_a_thread(toy_problem: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing_module, "STORE_AT_LEAST_EVERY", 0.0)
    monkeypatch.setattr(storing_module, "_STORE_COST_SHARE", 1e9)
    monkeypatch.setattr(storing_module, "_UNKNOWN_COST", 1.0)


class Trial:
    """One attempt at a run, as its worker makes it, epoch by epoch."""

    def __init__(self, store: Store, config: Any, **given: Any) -> None:
        begin = toy.start if isinstance(config, toy.ToyConfig) else start
        assignment = Assignment(config=config, store=store.url, **given)
        self.storing = Storing(assignment, "cpu")
        self.process = self.storing.resume(lambda: begin(config, None, "cpu"))
        self._epochs = iter(self.process)

    def train(self, epochs: int | None = None, seconds: float = 1.0) -> None:
        """Train epochs, by default all, each of which takes some seconds."""
        for _ in itertools.islice(self._epochs, epochs):
            self.storing.add(self.process, seconds)


def _train(store: Store, config: Any, until: int | None = None, seconds: float = 1.0) -> None:
    """Train a run, with the states that the plan of the store needs, up to the end of an epoch."""
    plan = plan_runs([Run(arm="arm", config=config)], store.keys())
    trial = Trial(store, config, keep=plan.pending[0].keep if plan.pending else frozenset())
    trial.train(None if until is None else until - len(trial.process.records), seconds)


def _outcome(store: Store, config: TrainConfig) -> str:
    (result,) = read_results([Run(arm="arm", config=config)], store)
    return result.outcome


def _stage(store: Store, key: str) -> Stage:
    stage = store.read(key)
    assert stage is not None
    return stage


@pytest.mark.parametrize(("spare", "stays"), [(0, False), (100, False), (10**6, True)])
def test_a_small_final_state_is_kept_for_longer_runs(spare: int, stays: bool, store: Store) -> None:
    Trial(store, BASE, spare_bytes=spare).train()
    longer = Run(arm="arm", config=with_values(BASE, {"epochs": 2 * BASE.epochs}))
    (planned,) = plan_runs([longer], store.keys()).pending
    assert planned.first_epoch == (BASE.epochs if stays else 0)


@pytest.mark.parametrize(("seconds", "stores"), [(0.2, False), (0.3, True)])
def test_a_run_of_less_than_a_second_stores_no_intermediate_stage(
    seconds: float, stores: bool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing_module, "STORE_AT_LEAST_EVERY", 20.0)
    monkeypatch.setattr(storing_module, "_UNKNOWN_COST", 0.0)
    _train(store, BASE, until=3, seconds=seconds)
    assert bool(store.keys()) is stores
    _train(store, BASE, seconds=seconds)
    assert dict(store.keys()) == {stage_keys(BASE)[-1]: False}


def test_a_resumed_run_leaves_the_same_stages_as_an_unbroken_run(tmp_path: Path) -> None:
    undisturbed, store = Store(str(tmp_path / "a")), Store(str(tmp_path / "b"))
    _train(undisturbed, BASE)
    _train(store, BASE, until=2)
    assert dict(store.keys())[stage_keys(BASE)[1]]
    _train(store, BASE)
    assert store.keys() == undisturbed.keys()
    key = stage_keys(BASE)[-1]
    assert _stage(store, key).records == _stage(undisturbed, key).records


def test_attempts_count_every_try_of_this_run_that_stored_a_stage(
    store: Store,
) -> None:
    run = Run(arm="arm", config=BASE)
    assert read_results([run], store)[0].attempts == 0
    for tries, until in ((1, 1), (2, 2), (3, 3)):
        _train(store, BASE, until=until)
        assert read_results([run], store)[0].attempts == tries
    longer = with_values(BASE, {"epochs": 8})
    assert read_results([Run(arm="longer", config=longer)], store)[0].attempts == 0
    _train(store, BASE)
    assert read_results([run], store)[0].attempts == 4
    _train(store, longer)
    assert read_results([Run(arm="longer", config=longer)], store)[0].attempts == 1
    assert _outcome(store, BASE) == _outcome(store, longer) == "complete"


def test_stages_stored_by_another_run_are_not_deleted(store: Store) -> None:
    mixed = with_values(BASE, {"mix.law": {"beta": 1.0}})
    fork = with_values(mixed, {"mix.switch_epoch": 2})
    _train(store, mixed, until=3)
    before = set(store.keys())
    _train(store, fork)
    assert before <= set(store.keys())
    _train(store, mixed)
    assert _outcome(store, mixed) == _outcome(store, fork) == "complete"


def test_the_two_latest_stages_are_kept_during_a_run(store: Store) -> None:
    longer = dataclasses.replace(BASE, epochs=9)
    _train(store, longer, until=6)
    keys = stage_keys(longer)
    assert set(store.keys()) == {keys[4], keys[5]}


def test_a_finished_run_leaves_predictions_that_give_its_last_error(store: Store) -> None:
    config = with_values(BASE, {"data.val_size": 200, "averaging": {"ema": 0.9}})
    _train(store, config, until=3)
    assert store.predictions.keys() == set()
    _train(store, config)
    (result,) = read_results([Run(arm="arm", config=config)], store)
    content = store.predictions.read(stage_keys(config)[-1], result.records[-1])
    assert content is not None
    for name, split in Predictions.from_bytes(content).splits.items():
        for weights, logits in split.logits.items():
            error = float((logits.argmax(1) != split.labels).mean())
            assert error == pytest.approx(result.records[-1].metrics[f"{name}/error{weights}"])


def test_a_run_of_an_archive_that_is_trained_again_has_predictions_of_its_own(
    store: Store, tmp_path: Path
) -> None:
    elsewhere, key = Store(str(tmp_path / "elsewhere")), stage_keys(BASE)[-1]
    _train(elsewhere, BASE)
    records = _stage(elsewhere, key).records
    put(store, Run(arm="arm", config=BASE), records, environment={ADDED: "x"})
    store.predictions.write(key, records[-1], b"brought")
    Trial(store, BASE, keep_final_state=True).train()
    own = elsewhere.predictions.read(key, records[-1])
    assert own is not None
    assert store.predictions.read(key, records[-1]) == own
    assert ADDED not in _stage(store, key).environment


def test_a_run_is_finished_only_once_its_predictions_are_stored(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Mock(side_effect=StoreFullError("disk full"))
    monkeypatch.setattr(PredictionStore, "write", full)
    with pytest.raises(StoreFullError):
        _train(store, BASE)
    assert _outcome(store, BASE) == "partial"


def test_a_stage_stored_by_a_run_is_kept_if_other_runs_need_the_stage(tmp_path: Path) -> None:
    store, longer = Store(str(tmp_path)), dataclasses.replace(BASE, epochs=9)
    key = stage_keys(longer)[2]
    owner = Trial(store, longer)
    owner.train(3)
    assert "resumes" in _stage(store, key).environment
    assert len(Trial(store, longer, keep=frozenset({3})).process.records) == 3
    assert "resumes" not in _stage(store, key).environment
    owner.train()
    assert _stage(store, key).state is not None
    assert set(store.keys()) == {key, stage_keys(longer)[-1]}


def test_a_stage_stored_for_other_runs_loses_its_resume_mark(tmp_path: Path) -> None:
    store, key = Store(str(tmp_path)), stage_keys(BASE)[1]
    trial = Trial(store, BASE, keep=frozenset({2}))
    _train(store, BASE, until=2)  # meanwhile another process of the same run passes by
    assert "resumes" in _stage(store, key).environment
    trial.train(2)
    assert "resumes" not in _stage(store, key).environment
    assert _stage(store, key).state is not None


def test_resuming_a_run_in_another_environment_is_logged_and_recorded(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    _train(store, BASE, until=2)
    assert caplog.messages == []
    monkeypatch.delenv("MKL_CBWR")
    _train(store, BASE, until=3)
    assert "resumed after epoch 2 in another environment" in caplog.text
    assert "settings='MKL_CBWR=COMPATIBLE'" in caplog.text
    caplog.clear()
    _train(store, BASE)
    assert caplog.messages == []
    found = _stage(store, stage_keys(BASE)[-1]).environment
    assert found["began_in"] == "epochs to 2: settings='MKL_CBWR=COMPATIBLE'"
    assert "settings" not in found


WALK = toy.ToyConfig(epochs=6, drift=0.5)
SHORT_EPOCH = 1e-9
"""Seconds of an epoch that is short compared with storing its state."""


def _walk(store: Store, keep: frozenset[int] = frozenset()) -> Trial:
    return Trial(store, WALK, keep=keep, keep_final_state=True)


def _train_toy(store: Store, pause: float = 0.0) -> None:
    trial = _walk(store)
    with trial.storing:
        for _ in range(WALK.epochs):
            trial.train(1, SHORT_EPOCH)
            time.sleep(pause)


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


def test_training_continues_during_a_write_and_only_one_state_is_written_at_a_time(
    store: Store, gate: threading.Event
) -> None:
    trial = _walk(store)
    storing = trial.storing
    with storing:
        trial.train(4, SHORT_EPOCH)
        assert len(trial.process.records) == 4, "the first state is not written yet"
        assert storing.take_rows() == []
        assert not store.keys()
        gate.set()
    assert [row["epoch"] for row in storing.take_rows()] == [0]
    assert dict(store.keys()) == {stage_keys(WALK)[0]: True}


def test_a_stage_that_other_runs_need_is_stored_before_training_continues(
    store: Store, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opens_the_gate(writes: Any, timeout: float | None) -> Any:
        if timeout is None:
            gate.set()
        return wait(writes, timeout)

    keys = stage_keys(WALK)
    trial = _walk(store, frozenset({2}))
    with trial.storing:
        trial.train(1, SHORT_EPOCH)
        monkeypatch.setattr(storing_module, "wait", opens_the_gate)
        trial.train(1, SHORT_EPOCH)
        assert dict(store.keys()) == {keys[0]: True, keys[1]: True}
        assert [row["epoch"] for row in trial.storing.take_rows()] == [0, 1]


@pytest.mark.parametrize(
    "error", [StoreFullError("disk full: x cannot be written"), OSError(30, "Read-only", "x")]
)
def test_a_write_error_in_the_thread_fails_the_run_with_the_usual_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    write = Folder.write

    def failing(folder: Folder, file: str, data: bytes) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise error
        write(folder, file, data)

    monkeypatch.setattr(Folder, "write", failing)
    assignment = Assignment(config=WALK, keep_final_state=True, store=str(tmp_path))
    failure = attempt(assignment, Driver(lambda _: None), {})["failure"]
    reason = spell_file_error(error) if isinstance(error, OSError) else str(error)
    assert (failure["kind"], failure["trace"]) == ("failed", "")
    assert reason in failure["message"]


def test_a_thread_that_dies_before_it_begins_raises_a_lack_of_memory_instead_of_a_hang(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing_module, "_THREAD_PATIENCE", 0.1)
    monkeypatch.setattr(storing_module, "start_new_thread", lambda *_: None)
    trial = _walk(store)
    with pytest.raises(MemoryError) as raised, trial.storing:
        trial.train(1, SHORT_EPOCH)
    text = "".join(traceback.format_exception(raised.value))
    assert MachineFault.of(text).kind == "memory"


def test_a_stage_is_stored_without_a_thread_if_none_can_be_created(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = Mock(side_effect=RuntimeError("can't start new thread"))
    monkeypatch.setattr(storing_module, "start_new_thread", refuses)
    trial = _walk(store)
    with trial.storing:
        trial.train(1, SHORT_EPOCH)
    assert dict(store.keys()) == {stage_keys(WALK)[0]: True}


def test_an_interrupt_does_not_wait_for_a_hanging_write(
    store: Store, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    monkeypatch.setattr(storing_module, "_INTERRUPT_PATIENCE", 0.1)
    trial = _walk(store)

    def train() -> NoReturn:
        with trial.storing:
            trial.train(1, SHORT_EPOCH)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    gate.set()
    assert dict(wait_for(store.keys)) == {stage_keys(WALK)[0]: True}, (
        "the process lives on, and its thread"
    )


@pytest.mark.parametrize("phase", ["mkstemp", "fsync", "replace", "hardlink_to", "unlink"])
def test_a_kill_at_any_step_of_a_write_loses_no_recorded_state(tmp_path: Path, phase: str) -> None:
    key = stage_keys(WALK)[-1]
    _train_toy(undisturbed := Store(str(tmp_path / "undisturbed")))
    whole = _stage(undisturbed, key)
    for kills in itertools.count():
        store = Store(str(tmp_path / str(kills)))
        if not _killed_at(phase, kills // 2, kills % 2 == 1, store):
            break
        for stage in store.stages():
            assert store.states.read(stage) is not None, "a record claims this state"
            assert list(stage.records) == list(whole.records[: stage.epochs])
        _train_toy(store)
        ended = _stage(store, key)
        assert (ended.records, ended.state) == (whole.records, whole.state)
        assert store.verify(stale_after=0.0) == ()
    assert kills >= 4, "the first and the last write were killed"


def _killed_at(phase: str, number: int, after: bool, store: Store) -> bool:
    """Train a run in a child process that is killed at a step; return False if it ended before."""
    if (child := os.fork()) == 0:
        counted = itertools.count()
        _interpose(phase, lambda: next(counted) == number, after=after)
        try:
            _train_toy(store, pause=0.02)  # so that most epochs are stored
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


_INTERRUPTED = """
import sys, time
from pathlib import Path
from sweeps.machine.scratch import scratch
from sweeps.running.storing import WRITING, open_write
from sweeps.running.placement import Placement
from sweeps.running.ray_cluster import cluster

begun, written = map(Path, sys.argv[1:])
try:
    with scratch() as folder, cluster(Placement(slots=1), 1, folder):
        import ray

        @ray.remote
        def write(file):
            with open_write(file):
                begun.touch()
                time.sleep(1.0)
                written.touch()

        task = write.remote(str(folder / WRITING))
        while not begun.exists():
            time.sleep(0.01)
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(written.exists())
"""


def test_an_interrupted_launch_with_ray_finishes_the_state_that_a_worker_writes(
    tmp_path: Path,
) -> None:
    done = run_python(_INTERRUPTED, tmp_path / "begun", tmp_path / "written", check=True)
    assert done.stdout == "True\n"


def test_no_write_begins_while_a_driver_ends(tmp_path: Path) -> None:
    file, begun = tmp_path / "writing", threading.Event()

    def write() -> None:
        with open_write(str(file)):
            begun.set()

    wait_for_writes(file)
    threading.Thread(target=write, daemon=True).start()
    assert not begun.wait(0.2)
