"""Sources: runs within a budget, and seeds that are added until claims are decided."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mixsweep.cli.hardware import Hardware
from mixsweep.cli.plan_summary import plan_summary
from mixsweep.cli.plan_text import spell_plan
from mixsweep.cli.status import spell_status, status_summary
from mixup_core.records import EpochRecord
from mixup_core.seeding import stream
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts
from reports.numbers.judging import verdicts_of
from reports.numbers.looks import reached_study
from reports.numbers.runs import arrange
from sweeps.searching.sources import BudgetedSource, LooksSource, Outlook
from sweeps.state.results import read_results
from sweeps.state.stages import plan_study
from sweeps.study.search import SearchHistory
from sweeps.study.study import Run, Study
from tests.filled import fail, put
from tests.sweeps.small_searches import GRID, noisy, read


def drained(source: BudgetedSource, store: Store, *, until: int = 1_000) -> list[tuple[str, int]]:
    """Train the runs of a source one after another, to the end or to the middle of one run."""
    trained: list[tuple[str, int]] = []
    clock = 3_600_000 * len(store.keys())
    while group := source.more(()):
        for planned in group:
            run = planned.run
            epochs = 10 if len(trained) + 1 == until else run.config.epochs
            clock += 360_000  # six minutes each, beside nothing else
            metrics, seconds = noisy(run.config), 360 / epochs
            put(
                store,
                run,
                [EpochRecord(epoch=epoch, metrics=metrics) for epoch in range(epochs)],
                b"state" if epochs == 10 else None,
                facts=[
                    EpochFacts(seconds=seconds, stored_at_ms=clock - int(1000 * seconds) * epoch)
                    for epoch in reversed(range(epochs))
                ],
            )
            trained.append((run.arm, run.seed))
            if len(trained) == until:
                return trained
    return trained


def budgeted(study: Study, store: Store) -> BudgetedSource:
    return BudgetedSource(study, plan_study(study, store), store)


@pytest.mark.parametrize("budget", ["hours: 0.3", "runs: 3"])
def test_a_budget_of_a_grid_gives_every_arm_equal_seeds_and_spans_launches(
    tmp_path: Path, store: Store, budget: str
) -> None:
    study = read(tmp_path, GRID + f"budget: {{{budget}}}\n")
    expected = [("erm", 0), ("uniform", 0), ("erm", 1), ("uniform", 1)]
    assert drained(budgeted(study, store), store) == expected
    assert drained(budgeted(study, store), store) == []

    def text_of(planned: Study) -> str:
        return spell_plan(plan_summary(planned, SearchHistory(), store, Hardware(slots=1)))

    limit = f"{budget.partition(' ')[2]} {budget.partition(':')[0]}"
    assert f"budget    the study used up its budget of {limit}, after 4 of 6" in text_of(study)
    ended = f"not running; the study used up its budget of {limit}"
    assert ended in spell_status(status_summary(study, store))
    more = read(tmp_path, GRID + f"budget: {{{budget.replace('3', '5')}}}\n")
    assert "no new seed after" in text_of(more)
    assert drained(budgeted(more, store), store) == [("erm", 2), ("uniform", 2)]


def test_an_interrupted_seed_is_finished_even_over_budget(tmp_path: Path, store: Store) -> None:
    study = read(tmp_path, GRID + "budget: {runs: 1}\n")
    assert drained(budgeted(study, store), store, until=1) == [("erm", 0)]
    assert sorted(drained(budgeted(study, store), store)) == [("erm", 0), ("uniform", 0)]
    assert drained(budgeted(study, store), store) == []


TEXT = """
study: s
base:
  data: {name: digits}
  model: {name: mlp}
  epochs: 2
  batch_size: 128
arms:
  erm: {mix.law: erm}
  far: {mix.law: {beta: 1.0}}
  near: {mix.law: {beta: 0.5}}
  alone: {mix.law: {beta: 2.0}}
seeds: {at_least: 3, at_most: 20, until: decided}
claims:
  - says: far is worse
    source: b
    that: {greater: [far, erm], metric: test/error}
  - says: near is worse
    source: b
    that: {greater: [near, erm], metric: test/error}
"""
ERRORS = {"erm": 0.1, "far": 0.6, "near": 0.108, "alone": 0.1}


def error_of(run: Run) -> float:
    noise = float(stream(run.seed, run.arm, 0).normal()) * 0.01
    return ERRORS[run.arm] + noise


def source_of(study: Study, store: Store) -> LooksSource:
    return LooksSource(study, store, partial(reached_study, study, store))


def drain(
    source: LooksSource,
    store: Store,
    *,
    most: int = 1_000,
    fails: Callable[[Run], bool] | None = None,
) -> list[list[tuple[str, int]]]:
    """Train all runs of a source, or a given number of them; return the runs batch by batch."""
    batches: list[list[tuple[str, int]]] = []
    while batch := source.more(()):
        batches.append([])
        for planned in batch:
            if most == 0:
                return batches
            most -= 1
            failed = fails is not None and fails(planned.run)
            if not failed:
                metrics = {"test/error": error_of(planned.run)}
                put(store, planned.run, [EpochRecord(epoch=e, metrics=metrics) for e in range(2)])
            batches[-1].append((planned.run.arm, planned.run.seed))
            source.end(planned.run, failed=failed)
    return batches


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return read(tmp_path, TEXT)


def test_only_arms_of_open_claims_get_the_seeds_of_the_next_look(
    study: Study, store: Store
) -> None:
    first, *others = drain(source := source_of(study, store), store)
    assert sorted(first) == sorted((arm, seed) for arm in ERRORS for seed in range(3))
    assert {arm for batch in others for arm, _ in batch} == {"erm", "near"}
    assert source.study.reached["far"] == source.study.reached["alone"] == 3
    assert source.study.reached["erm"] == source.study.reached["near"] > 3
    reached = source.study.runs()
    assert sorted((run.arm, run.seed) for run in reached) == sorted(
        [*first, *(run for batch in others for run in batch)]
    )
    far, near = verdicts_of(source.study, arrange(source.study, read_results(reached, store)))
    assert far.spelled == "holds at look 1 of 6"
    assert near.n == source.study.reached["near"]


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_a_driver_killed_after_any_run_resumes_with_the_same_runs_and_looks(
    study: Study, tmp_path: Path, step: int
) -> None:
    whole = Store(str(tmp_path / "whole"))
    drain(expected := source_of(study, whole), whole)
    for killed in range(0, len(expected.study.runs()) + 1, step):
        store = Store(str(tmp_path / f"{killed}"))
        drain(source_of(study, store), store, most=killed)
        drain(again := source_of(study, store), store)
        assert again.study.reached == expected.study.reached
        assert {r.stage.key for r in read_results(study.runs(), store) if r.stage} == set(
            whole.keys()
        )


def test_a_failed_run_keeps_its_look_open_until_the_run_is_trained(
    study: Study, store: Store
) -> None:
    batches = drain(
        source := source_of(study, store),
        store,
        fails=lambda run: (run.arm, run.seed) == ("near", 2),
    )
    assert len(batches) == 1, "the look at an open claim is not taken"
    assert source.outlook(1) == Outlook(num_runs=0)
    assert drain(source_of(study, store), store)[0] == [("near", 2)]


def test_a_run_that_diverges_after_a_look_leaves_the_verdicts_of_that_look_unchanged(
    study: Study, store: Store
) -> None:
    (lost,) = (run for run in study.runs_of("erm") if run.seed == 4)
    fail(store, lost, "diverged")
    drain(source := source_of(study, store), store)
    reached = source.study
    assert reached.reached == {"erm": 5, "far": 3, "near": 5, "alone": 3}
    results = read_results(reached.runs(), store)
    far, near = verdicts_of(reached, arrange(reached, results))
    assert far.spelled == "holds at look 1 of 6"
    assert (near.verdict, near.n) == ("unfinished", 5)
    assert "diverged" in {result.outcome for result in results}
