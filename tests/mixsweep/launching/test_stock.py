"""Housekeeping: what is listed, what is deleted, and what is kept."""

from dataclasses import replace
from pathlib import Path

import pytest

from mixsweep.launching.stock import prune, spell_stock, take_stock
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
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
    assert prune(stock[:-1], store) > 1000
    assert dict(store.keys()) == {keys[0]: False, keys[1]: True, keys[2]: True}
    assert not take_stock([study], store)[0].prunable


def test_a_finished_run_keeps_its_last_state_and_every_record(store: Store, study: Study) -> None:
    run = study.runs()[0]
    early, final = (store_stage(store, run, epochs, b"weights") for epochs in (5, 6))
    prune(take_stock([study], store)[:-1], store)
    assert dict(store.keys()) == {early: False, final: True}
    stages = {stage.key: stage for stage in store.stages()}
    assert (stages[early].epochs, stages[final].epochs) == (5, 6)


def test_the_state_of_a_diverged_run_is_freed(store: Store, study: Study) -> None:
    run = study.runs()[0]
    key = store_stage(store, run, 2, b"weights")
    assert not take_stock([study], store)[0].prunable
    store.failures.write(
        Failure(run_key=run.key, kind="diverged", message="nan", epoch=2, attempts=1)
    )
    assert [stage.key for stage in take_stock([study], store)[0].prunable] == [key]


def test_states_that_another_study_needs_are_kept(store: Store, study: Study) -> None:
    longer = load_study("digits", ["study=longer", "base.epochs=9"])
    for epochs in (4, 5, 6):
        store_stage(store, study.runs()[0], epochs, b"weights")
    first, second, others = take_stock([study, longer], store)
    assert [stage.epochs for stage in first.prunable] == [4]
    assert (first.num_finished, second.num_finished) == (1, 0)
    assert (first.num_states, second.num_states, others.num_states) == (3, 0, 0)
    assert [stage.epochs for stage in take_stock([study], store)[0].prunable] == [4, 5]


@pytest.mark.parametrize("columns", [60, 80, 140, None])
def test_the_table_of_the_store_fits_the_terminal(
    store: Store, study: Study, columns: int | None
) -> None:
    long = replace(study, name="a-study-with-quite-a-long-name")
    store_stage(store, study.runs()[0], 1, b"weights")
    header, row, others = spell_stock(take_stock([long], store), 0, columns).splitlines()
    assert len(header) == len(row) == len(others)
    assert columns is None or len(header) < columns
    assert header.endswith("MB  prunable MB  predictions MB")
    assert (" states " in header) == (columns != 60)
    assert row.startswith("a-study-with-quite-a-long-name" if columns in {140, None} else "a-st")
