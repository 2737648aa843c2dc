"""Storing: when stages are stored and which of them are kept, without Ray."""

import dataclasses
import itertools
from pathlib import Path

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.choices.models import Mlp
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.training import start
from mixup_core.keys import stage_keys
from mixup_core.predictions import Predictions
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from sweeps.running.assignment import Assignment
from sweeps.running.storing import Storing
from sweeps.state.results import read_results
from sweeps.state.stages import plan_runs
from sweeps.study.study import Run

BASE = TrainConfig(
    data=DataConfig(name="digits", num_train=100),
    model=Mlp(hidden=(8,)),
    epochs=4,
    batch_size=50,
)


@pytest.fixture(autouse=True)
def _store_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweeps.running.storing.STORE_AT_LEAST_EVERY", 0.0)


def _train(
    store: Store,
    config: TrainConfig,
    *,
    until: int | None = None,
    keep: frozenset[int] = frozenset(),
    seconds: float = 1.0,
) -> None:
    """Train one run as its trial would, up to an epoch at which its process dies.

    Args:
        store: Where its stages are stored.
        config: Its configuration.
        until: The epoch at which the process dies; None for never.
        keep: Epochs from which other runs start, besides those that the store's plan knows.
        seconds: How long each epoch is said to have taken.
    """
    run = Run(arm="arm", config=config)
    plan = plan_runs([run], store.keys())
    keep |= plan.pending[0].keep if plan.pending else frozenset()
    assignment = Assignment(config=config, keep=keep, store=store.url)
    storing = Storing(assignment, "cpu")
    state = storing.resume(lambda: start(config, None, "cpu"))
    epochs = None if until is None else until - len(state.records)
    for _ in itertools.islice(iter(state), epochs):
        storing.add(state, seconds)


def _outcome(store: Store, config: TrainConfig) -> str:
    (result,) = read_results([Run(arm="arm", config=config)], store)
    return result.outcome


@pytest.mark.parametrize(("spare", "stays"), [(0, False), (100, False), (10**6, True)])
def test_a_small_final_state_is_kept_for_longer_runs(
    spare: int, stays: bool, tmp_path: Path
) -> None:
    store = Store(str(tmp_path))
    assignment = Assignment(config=BASE, store=store.url, spare_bytes=spare)
    storing = Storing(assignment, "cpu")
    for _ in iter(state := storing.resume(lambda: start(BASE, None, "cpu"))):
        storing.add(state, 1.0)
    longer = Run(arm="arm", config=with_values(BASE, {"epochs": 2 * BASE.epochs}))
    (planned,) = plan_runs([longer], store.keys()).pending
    assert planned.first_epoch == (BASE.epochs if stays else 0)
    if stays:  # and ends as if it had been trained at once
        _train(store, longer.config)
        alone = Store(str(tmp_path / "alone"))
        _train(alone, longer.config)
        (ours,), (theirs,) = (read_results([longer], each) for each in (store, alone))
        assert ours.records == theirs.records


def test_a_longer_run_keeps_the_result_of_a_shorter_one(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    longer = with_values(BASE, {"epochs": 8})
    for config in (BASE, longer):
        _train(store, config)
    assert _outcome(store, BASE) == "complete"
    assert _outcome(store, longer) == "complete"


@pytest.mark.parametrize(("seconds", "stores"), [(0.2, False), (0.3, True)])
def test_a_run_of_less_than_a_second_stores_no_intermediate_stage(
    seconds: float, stores: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeps.running.storing.STORE_AT_LEAST_EVERY", 20.0)
    store = Store(str(tmp_path))
    _train(store, BASE, until=3, seconds=seconds)
    assert bool(store.keys()) is stores
    _train(store, BASE, seconds=seconds)
    assert dict(store.keys()) == {stage_keys(BASE)[-1]: False}


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_killed_and_resumed_run_leaves_the_same_stages_as_an_unbroken_run(
    tmp_path: Path, stop: int
) -> None:
    undisturbed, store = Store(str(tmp_path / "a")), Store(str(tmp_path / "b"))
    _train(undisturbed, BASE)
    _train(store, BASE, until=stop)
    assert dict(store.keys())[stage_keys(BASE)[stop - 1]]
    _train(store, BASE)
    assert store.keys() == undisturbed.keys()
    key = stage_keys(BASE)[-1]
    ended, whole = store.read(key), undisturbed.read(key)
    assert ended is not None
    assert whole is not None
    assert ended.records == whole.records


def test_attempts_count_every_try_of_this_run_that_stored_a_stage(
    tmp_path: Path,
) -> None:
    store = Store(str(tmp_path))
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


def test_stages_stored_by_another_run_are_not_deleted(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    mixed = with_values(BASE, {"mix.law": {"beta": 1.0}})
    fork = with_values(mixed, {"mix.switch_epoch": 2})
    _train(store, mixed, until=3)
    before = set(store.keys())
    _train(store, fork)
    assert before <= set(store.keys())
    _train(store, mixed)
    assert _outcome(store, mixed) == _outcome(store, fork) == "complete"


def test_the_two_latest_stages_are_kept_during_a_run(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    longer = dataclasses.replace(BASE, epochs=9)
    _train(store, longer, until=6)
    keys = stage_keys(longer)
    assert set(store.keys()) == {keys[4], keys[5]}


def test_a_finished_run_leaves_predictions_that_give_its_last_error(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
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


def test_a_stage_stored_by_a_run_is_kept_if_other_runs_need_the_stage(tmp_path: Path) -> None:
    store, longer = Store(str(tmp_path)), dataclasses.replace(BASE, epochs=9)
    key = stage_keys(longer)[2]
    assignment = Assignment(config=longer, store=store.url)
    owner = Storing(assignment, "cpu")
    state = owner.resume(lambda: start(longer, None, "cpu"))
    under_way = iter(state)
    for _ in itertools.islice(under_way, 3):
        owner.add(state, 1.0)
    assert "resumes" in _stage(store, key).environment
    other = Storing(dataclasses.replace(assignment, keep=frozenset({3})), "cpu")
    assert len(other.resume(lambda: start(longer, None, "cpu")).records) == 3
    assert "resumes" not in _stage(store, key).environment
    for _ in under_way:
        owner.add(state, 1.0)
    assert _stage(store, key).state is not None
    assert set(store.keys()) == {key, stage_keys(longer)[-1]}


def test_a_stage_stored_for_other_runs_loses_its_resume_mark(tmp_path: Path) -> None:
    store, key = Store(str(tmp_path)), stage_keys(BASE)[1]
    assignment = Assignment(config=BASE, keep=frozenset({2}), store=store.url)
    storing = Storing(assignment, "cpu")
    state = storing.resume(lambda: start(BASE, None, "cpu"))
    _train(store, BASE, until=2)  # meanwhile another process of the same run passes by
    assert "resumes" in _stage(store, key).environment
    for _ in itertools.islice(iter(state), 2):
        storing.add(state, 1.0)
    assert "resumes" not in _stage(store, key).environment
    assert _stage(store, key).state is not None


def _stage(store: Store, key: str) -> Stage:
    stage = store.read(key)
    assert stage is not None
    return stage


def test_resuming_a_run_in_another_environment_is_logged_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    store = Store(str(tmp_path))
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
