"""Looks cost: seeds that planned looks will need, and what they cost."""

from pathlib import Path

import pytest

from mixsweep.cli.hardware import Hardware
from mixsweep.cli.looks_cost import LooksCost, looks_cost, spell_looks
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from reports.numbers.looks import reached_study
from sweeps.study.study import Study
from tests.filled import put
from tests.sweeps.searching.test_sources import TEXT, error_of, source_of
from tests.sweeps.small_searches import read


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return read(tmp_path, TEXT)


def cost_of(study: Study, store: Store, price: float | None = None) -> LooksCost:
    return looks_cost(reached_study(study, store), store, Hardware(slots=2, price=price))


def test_before_the_first_run_there_are_expected_runs_for_each_effect_size(
    study: Study, store: Store
) -> None:
    cost = cost_of(study, store)
    assert (cost.most.runs, cost.most.to_run, cost.most.seconds) == (3 * 20 + 3, 63, None)
    assert cost.expected is None
    by_sd = {sd: totals.to_run for sd, totals in cost.expected_by_sd.items()}
    assert list(by_sd) == ["0", "0.5", "1", "2"]
    assert all(12 <= runs <= 63 for runs in by_sd.values())
    assert by_sd["2"] < by_sd["1"] < by_sd["0.5"]
    lines = list(spell_looks(cost, slots=2))
    assert lines[0] == ("looks", "at 3, 5, 8, 11, 15, 20 seeds; 2 claims open")
    assert [label for label, _ in lines[1:]] == [*["expected"] * 4, "at most"]
    told = "if each true value is 1 sd over seeds from the limit of its claim"
    assert lines[3][1].endswith(told)


def test_after_a_look_runs_and_cost_are_estimated_from_the_stored_spread(
    study: Study, store: Store
) -> None:
    (first, *_) = (source := source_of(study, store)).more(()), None
    for planned in first:
        metrics = {"test/error": error_of(planned.run)}
        put(store, planned.run, [EpochRecord(epoch=epoch, metrics=metrics) for epoch in range(2)])
        source.end(planned.run, failed=False)
    cost = cost_of(study, store, price=3_600.0)
    assert cost.open == 1, "far is decided at the first look"
    assert cost.most.to_run == 2 * 17
    assert 4 <= cost.expected.to_run <= 34
    assert cost.expected.seconds == pytest.approx(cost.expected.to_run)
    assert cost.expected.cost == pytest.approx(2 * cost.expected.to_run)
    told = dict(spell_looks(cost, slots=2))["expected"]
    assert told.endswith("if new seeds vary like the stored ones")
