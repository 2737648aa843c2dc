from pathlib import Path

import pytest

from mixsweep.cli.plan_summary import plan_summary, spell_plan
from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts
from sweeps.searching.sources import BudgetedSource
from sweeps.state.stages import plan_study
from sweeps.study.search import SearchHistory
from sweeps.study.study import Study
from tests.sweeps.small_searches import GRID, noisy, read


def drained(
    source: BudgetedSource, store: Store, *, until: int = 1_000, is_whole: bool = False
) -> list[tuple[str, int]]:
    """Train the runs of a source one after another, to the end or to the middle of one run."""
    trained: list[tuple[str, int]] = []
    clock = 3_600_000 * len(store.keys())
    while group := source.more(()):
        for planned in group:
            run = planned.run
            is_cut = len(trained) + 1 == until and not is_whole
            epochs = 10 if is_cut else run.config.epochs
            clock += 360_000  # six minutes each, beside nothing else
            store.write(
                stage_keys(run.config)[epochs - 1],
                records=[
                    EpochRecord(epoch=epoch, metrics=noisy(run.config)) for epoch in range(epochs)
                ],
                facts=[
                    EpochFacts(seconds=360 / epochs, stored_at_ms=clock - 360_000 // epochs * epoch)
                    for epoch in reversed(range(epochs))
                ],
                environment={},
                state=b"state" if epochs == 10 else None,
            )  # fmt: skip
            trained.append((run.arm, run.seed))
            if len(trained) == until:
                return trained
    return trained


def budgeted(study: Study, store: Store) -> BudgetedSource:
    return BudgetedSource(study, plan_study(study, store), store)


@pytest.mark.parametrize("budget", ["hours: 0.3", "runs: 3"])
def test_a_budget_of_a_grid_gives_every_arm_equal_seeds_and_spans_launches(
    tmp_path: Path, budget: str
) -> None:
    study = read(tmp_path, GRID + f"budget: {{{budget}}}\n")
    store = Store(str(tmp_path / "store"))
    expected = [("erm", 0), ("uniform", 0), ("erm", 1), ("uniform", 1)]
    assert drained(budgeted(study, store), store) == expected
    assert drained(budgeted(study, store), store) == []
    summary = plan_summary(study, SearchHistory(), store, slots=1)
    limit = f"{budget.partition(' ')[2]} {budget.partition(':')[0]}"
    assert f"budget    the study used up its budget of {limit}, after 4 of 6" in spell_plan(summary)
    more = read(tmp_path, GRID + f"budget: {{{budget.replace('3', '5')}}}\n")
    assert "no new seed after" in spell_plan(plan_summary(more, SearchHistory(), store, slots=1))
    assert drained(budgeted(more, store), store) == [("erm", 2), ("uniform", 2)]


def test_an_interrupted_seed_is_finished_even_over_budget(tmp_path: Path) -> None:
    study = read(tmp_path, GRID + "budget: {runs: 1}\n")
    store = Store(str(tmp_path / "store"))
    assert drained(budgeted(study, store), store, until=1) == [("erm", 0)]
    assert sorted(drained(budgeted(study, store), store)) == [("erm", 0), ("uniform", 0)]
    assert drained(budgeted(study, store), store) == []
