"""Housekeeping: what is listed, what is deleted, and what is kept."""

from pathlib import Path

import pytest

from mixsweep.launching.stock import prune, take_stock
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.study.study import Study
from tests.mixsweep.cli.trained import store_stage


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


@pytest.fixture
def study() -> Study:
    return load_study("digits", ["base.epochs=6"])


def test_states_that_a_run_resumes_from_are_kept_and_earlier_ones_are_freed(
    store: Store, study: Study
) -> None:
    keys = [store_stage(store, study.runs()[0], epochs, bytes(1000)) for epochs in (1, 2, 3)]
    stock = take_stock([study], store)
    assert [stage.key for stage in stock[0].prunable] == keys[:1]
    assert prune(stock[:-1], store, keys) > 1000
    assert dict(store.keys()) == {keys[0]: False, keys[1]: True, keys[2]: True}
    assert not take_stock([study], store)[0].prunable


def test_states_that_another_study_needs_are_kept(store: Store, study: Study) -> None:
    longer = load_study("digits", ["study=longer", "base.epochs=9"])
    for epochs in (4, 5, 6):
        store_stage(store, study.runs()[0], epochs, b"weights")
    first, second, others = take_stock([study, longer], store)
    assert [stage.epochs for stage in first.prunable] == [4]
    assert (first.num_finished, second.num_finished) == (1, 0)
    assert (first.num_states, second.num_states, others.num_states) == (3, 0, 0)
    assert [stage.epochs for stage in take_stock([study], store)[0].prunable] == [4, 5]
