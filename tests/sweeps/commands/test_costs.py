import pytest

from mixup_core.images.config import TrainConfig
from mixup_core.keys import stage_key
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import EpochFacts, Stage, StateRef
from mixup_core.tree import with_values
from sweeps.commands.costs import bytes_of_predictions, bytes_to_keep, seconds_to_train
from sweeps.results import RunResult
from sweeps.stages import plan_runs
from sweeps.study import Run

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


def test_time_comes_from_the_median_epoch_of_the_arm_or_of_the_others() -> None:
    runs = [_run(BASE, 0, "erm"), _run(BASE, 1, "erm"), _run(MIXED, 0, "midpoint")]
    results = [_result(runs[0], [9.0] + [2.0] * 9)]
    plan = plan_runs(runs[1:], {})
    assert seconds_to_train(plan, results, slots=1) == pytest.approx(40)
    assert seconds_to_train(plan, results, slots=2) == pytest.approx(20)
    assert seconds_to_train(plan, results, slots=9) == pytest.approx(20), "a run is not split"


def test_nobody_knows_the_time_before_an_epoch_was_measured() -> None:
    plan = plan_runs([_run(BASE, 0, "erm")], {})
    assert seconds_to_train(plan, [], slots=2) is None


def test_forks_keep_a_state_each_and_plain_runs_none() -> None:
    plain = [_run(BASE, 0, "erm")]
    assert bytes_to_keep(plan_runs(plain, {}), []) == 0
    forks = [_run(with_values(MIXED, {"mix.switch_epoch": t}), 0, str(t)) for t in (4, 8, 10)]
    plan = plan_runs(forks, {})
    assert bytes_to_keep(plan, []) is None
    measured = _result(forks[0], [1.0], StateRef(sha256="0" * 64, size=1000))
    assert bytes_to_keep(plan, [measured]) == 2000


def test_predictions_take_four_bytes_for_each_class_of_each_image_and_network() -> None:
    plain = with_values(BASE, {"data.name": "digits"})
    assert bytes_of_predictions([plain]) == 360 * (4 * 10 + 1)
    both = with_values(plain, {"data.val_size": 40, "averaging": {"ema": 0.9}})
    assert bytes_of_predictions([plain, both]) == 360 * 41 + 400 * 81
