"""Plan summary: sizes, costs, and how often it reads a stored run."""

from collections import Counter
from pathlib import Path

import pytest

from mixsweep.cli.plan_summary import plan_summary, spell_plan
from mixsweep.cli.status import status_summary
from mixsweep.launching.costs import bytes_to_keep, seconds_to_train
from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.keys import stage_key
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.files import Folder
from mixup_core.store.manifests import EpochFacts, Stage, StateRef
from sweeps.reading.study_file import load_study
from sweeps.state.results import RunResult
from sweeps.state.stages import plan_runs
from sweeps.study.search import SearchHistory
from sweeps.study.study import Run
from tests.bench.stored import fill


def test_plan_and_status_read_each_stored_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, study = Store(str(tmp_path)), load_study("digits", ["seeds=2"])
    fill(store, study)
    opened: Counter[str] = Counter()
    read = Folder.read

    def counted(folder: Folder, name: str) -> bytes:
        opened[name] += name.startswith("stages/")
        return read(folder, name)

    monkeypatch.setattr(Folder, "read", counted)
    assert plan_summary(study, SearchHistory(), store, slots=1)["to_run"] == 0
    assert set(opened.values()) == {1}
    opened.clear()
    assert status_summary(study, store)["seconds_left"] == 0
    assert set(opened.values()) == {1}


def test_a_plan_shows_no_size_of_0_mb(tmp_path: Path) -> None:
    summary = plan_summary(load_study("digits"), SearchHistory(), Store(str(tmp_path)), slots=1)
    assert "records, 0.1 MB of predictions" in spell_plan(summary)
    few = spell_plan(summary | {"prediction_bytes": 20_000})
    assert "records, less than 0.1 MB of predictions" in few


@pytest.mark.parametrize(
    ("gigabytes", "told"),
    [
        (7, "0.1 MB of digits once"),
        (4, "4.0 GB are free, surely enough for 2 at a time; most runs need far less"),
        (1, "1.0 GB are free; most runs need far less; 0.1 MB"),
    ],
)
def test_a_plan_prints_how_many_runs_have_enough_free_memory(
    gigabytes: int, told: str, tmp_path: Path
) -> None:
    summary = plan_summary(load_study("digits"), SearchHistory(), Store(str(tmp_path)), slots=4)
    text = spell_plan(summary | {"free_bytes": gigabytes * 10**9})
    assert (
        f"memory    at most 1.5 GB per run, computed from its images and batch size; {told}" in text
    )


BASE = TrainConfig(epochs=10, batch_size=8)
MIXED = with_values(BASE, {"mix.law": "midpoint"})


def _result(run: Run, seconds: list[float], state: StateRef | None = None) -> RunResult:
    stage = Stage(
        key=stage_key(run.config, len(seconds)),
        records=tuple(EpochRecord(epoch=epoch, metrics={}) for epoch in range(len(seconds))),
        facts=tuple(EpochFacts(seconds=s, stored_at_ms=0) for s in seconds),
        environment={},
        state=state,
    )
    return RunResult(run=run, stage=stage, failure=None)


def _run(config: TrainConfig, seed: int, arm: str) -> Run:
    return Run(arm=arm, config=with_values(config, {"seed": seed}))


def test_the_time_to_train_uses_the_median_epoch_of_the_arm_or_of_other_arms() -> None:
    runs = [_run(BASE, 0, "erm"), _run(BASE, 1, "erm"), _run(MIXED, 0, "midpoint")]
    results = [_result(runs[0], [9.0] + [2.0] * 9)]
    plan = plan_runs(runs[1:], {})
    assert seconds_to_train(plan, results, slots=1) == pytest.approx(40)
    assert seconds_to_train(plan, results, slots=2) == pytest.approx(20)
    assert seconds_to_train(plan, results, slots=9) == pytest.approx(20), "a run is not split"


def test_each_fork_keeps_one_state_and_plain_runs_keep_none() -> None:
    plain = [_run(BASE, 0, "erm")]
    assert bytes_to_keep(plan_runs(plain, {}), []) == 0
    forks = [_run(with_values(MIXED, {"mix.switch_epoch": t}), 0, str(t)) for t in (4, 8, 10)]
    plan = plan_runs(forks, {})
    assert bytes_to_keep(plan, []) is None
    measured = _result(forks[0], [1.0], StateRef(sha256="0" * 64, size=1000))
    assert bytes_to_keep(plan, [measured]) == 2000
