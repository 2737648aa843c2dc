"""Housekeeping: what is listed, what is freed, and what must stay."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, Failure
from sweeps.cli import commands
from sweeps.commands.housekeeping import prune, take_stock
from sweeps.leasing.holders import StudyBusyError
from sweeps.leasing.lease import Lease
from sweeps.reading.study_file import load_study
from sweeps.study import Run, Study


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


@pytest.fixture
def study() -> Study:
    return load_study("digits", ["base.epochs=6"])


def _store(store: Store, run: Run, epochs: int, state: bytes | None) -> str:
    key = stage_keys(run.config)[epochs - 1]
    store.write(
        key,
        records=[EpochRecord(epoch=epoch, metrics={"test/error": 0.5}) for epoch in range(epochs)],
        facts=[EpochFacts(seconds=1.0, stored_at_ms=1)] * epochs,
        environment={},
        state=state,
    )
    return key


def test_the_states_a_run_goes_on_from_stay_and_earlier_ones_are_freed(
    store: Store, study: Study
) -> None:
    keys = [_store(store, study.runs()[0], epochs, bytes(1000)) for epochs in (1, 2, 3)]
    stock = take_stock([study], store)
    assert [stage.key for stage in stock[0].prunable] == keys[:1]
    assert prune(stock[:-1], store) > 1000
    assert dict(store.keys()) == {keys[0]: False, keys[1]: True, keys[2]: True}
    assert not take_stock([study], store)[0].prunable


def test_a_finished_run_keeps_its_last_state_and_every_record(store: Store, study: Study) -> None:
    run = study.runs()[0]
    early, final = (_store(store, run, epochs, b"weights") for epochs in (5, 6))
    prune(take_stock([study], store)[:-1], store)
    assert dict(store.keys()) == {early: False, final: True}
    stages = {stage.key: stage for stage in store.stages()}
    assert (stages[early].epochs, stages[final].epochs) == (5, 6)


def test_a_diverged_run_needs_no_state(store: Store, study: Study) -> None:
    run = study.runs()[0]
    key = _store(store, run, 2, b"weights")
    assert not take_stock([study], store)[0].prunable
    store.failures.write(
        Failure(run_key=run.key, kind="diverged", message="nan", epoch=2, attempts=1)
    )
    assert [stage.key for stage in take_stock([study], store)[0].prunable] == [key]


def test_what_one_study_is_done_with_stays_while_another_needs_it(
    store: Store, study: Study
) -> None:
    longer = load_study("digits", ["study=longer", "base.epochs=9"])
    for epochs in (4, 5, 6):
        _store(store, study.runs()[0], epochs, b"weights")
    first, second, others = take_stock([study, longer], store)
    assert [stage.epochs for stage in first.prunable] == [4]
    assert (first.num_finished, second.num_finished) == (1, 0)
    assert (first.num_states, second.num_states, others.num_states) == (3, 0, 0)
    assert [stage.epochs for stage in take_stock([study], store)[0].prunable] == [4, 5]


def test_stages_of_studies_that_are_not_named_are_left_alone(store: Store, study: Study) -> None:
    for epochs in (1, 2, 3):
        _store(store, study.runs()[0], epochs, b"weights")
    stock = take_stock([load_study("digits", ["base.batch_size=64"])], store)
    assert (stock[0].stages, stock[1].num_states) == ((), 3)
    assert prune(stock[:-1], store) == 0


def _predicted(store: Store, run: Run) -> str:
    key = _store(store, run, 6, None)
    stage = store.read(key)
    assert stage is not None
    store.predictions.write(key, stage.records[-1], bytes(1_000_000))
    return key


def test_predictions_are_listed_and_freed_like_states(
    store: Store, study: Study, tmp_path: Path
) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(study.source)
    key = _predicted(store, study.runs()[0])
    other = load_study("digits", ["base.epochs=6", "base.batch_size=64"])
    others_key = _predicted(store, other.runs()[0])
    listed = _mixsweep(tmp_path, "list", str(file)).output.splitlines()
    assert [line.split()[-1] for line in listed[1:]] == ["1.0", "1.0"]
    assert "predictions of 1 runs" in _mixsweep(tmp_path, "prune", str(file)).output
    assert store.predictions.keys() == {key, others_key}
    spared = _mixsweep(tmp_path, "prune", str(file), "--yes", "--keep-predictions")
    assert "freed 0.0 MB" in spared.output
    assert "freed 1.0 MB" in _mixsweep(tmp_path, "prune", str(file), "--yes").output
    assert store.predictions.keys() == {others_key}
    assert take_stock([study], store)[0].num_finished == 1


def _mixsweep(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(commands, ["store", *arguments, "--home", str(home)])


def test_prune_lists_first_and_removes_only_when_told_to(
    store: Store, study: Study, tmp_path: Path
) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(study.source)
    for epochs in (1, 2, 3):
        _store(store, study.runs()[0], epochs, bytes(2_000_000))
    listed = _mixsweep(tmp_path, "prune", str(file))
    assert "nothing was removed" in listed.output
    assert sum(store.keys().values()) == 3
    assert "2.0" in _mixsweep(tmp_path, "list", str(file)).output
    with Lease.acquire(store, study.name, "a driver"):
        busy = _mixsweep(tmp_path, "prune", str(file), "--yes")
        assert isinstance(busy.exception, StudyBusyError)
    assert "freed 2.0 MB" in _mixsweep(tmp_path, "prune", str(file), "--yes").output
    assert sum(store.keys().values()) == 2


def test_verify_names_what_is_damaged_and_exits_1(
    store: Store, study: Study, tmp_path: Path
) -> None:
    key = _store(store, study.runs()[0], 1, b"weights")
    sound = _mixsweep(tmp_path, "verify")
    assert (sound.return_value, sound.output) == (None, "all is well\n")
    (state,) = (tmp_path / "store" / "states").rglob("*.bin")
    state.write_bytes(b"other bytes")
    damaged = CliRunner().invoke(
        commands, ["store", "verify", "--home", str(tmp_path)], standalone_mode=False
    )
    assert damaged.return_value == 1
    assert key in damaged.stderr
    assert "1 damaged files are in quarantine/" in _mixsweep(tmp_path, "list").output
