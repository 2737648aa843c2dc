"""Runs that share their first epochs, while the run that trains these epochs keeps dying."""

from pathlib import Path

import pytest
import torch

from mixup_core.images.data.datasets import load
from mixup_core.images.training import TrainingState, fit
from mixup_core.store.checkpoints import Store
from sweeps.state.stages import plan_runs
from tests.conftest import CommandLines
from tests.faults.invariants import assert_store_is_whole, assert_tracked
from tests.faults.launches import Launch, Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

FORKS = Task(str(Path(__file__).with_name("forks.yaml")))
SWITCH_EPOCHS = (0, 10, 20, 30)
TRIES = 4
"""Number of tries of a run whose process keeps dying."""


@pytest.mark.long
def test_forks_of_a_killed_trunk_equal_runs_trained_separately(
    command_line: CommandLines,
) -> None:
    mixsweep = command_line()
    plan = plan_runs(FORKS.study.runs(), {})
    assert (plan.epochs_naive, plan.epochs_planned) == (240, 2 * (30 + 30 + 20 + 10))
    doomed, unlucky = (planned.run for planned in plan.pending if len(planned.keep) == 2)
    with Launch(mixsweep, FORKS) as launch:
        launch.kill_worker(launch.worker(unlucky))
        pid = None
        for _ in range(TRIES):
            pid = launch.worker(doomed, other_than=pid)
            launch.kill_worker(pid)
        said = launch.end(1).stderr
    assert f"{doomed.arm} seed {doomed.seed} failed: its process failed {TRIES} times" in said
    others = [result for result in FORKS.results(launch.store) if result.run != doomed]
    assert [result.outcome for result in others] == ["complete"] * 7, "forks went on without it"

    with Launch(mixsweep, FORKS) as launch:
        launch.end(0)
    results = FORKS.results(launch.store)
    data = load(FORKS.study.runs()[0].config.data, mixsweep.data)
    torch.set_num_threads(1)  # as in a trial: the last bits depend on it
    for result in (result for result in results if result.run.seed == doomed.seed):
        alone = TrainingState.initial(result.run.config, data.info, "cpu")
        assert tuple(fit(result.run.config, data, alone)) == result.records, result.run
        assert Store(str(launch.store)).states.read(result.stage) == alone.to_bytes(), result.run
    for seed in FORKS.study.seeds:
        of_seed = {r.run.config.mix.switch_epoch: r.facts for r in results if r.run.seed == seed}
        for switch_epoch in SWITCH_EPOCHS:
            trunk = of_seed[30][:switch_epoch]
            assert of_seed[switch_epoch][:switch_epoch] == trunk, "trained twice"
    assert_store_is_whole(launch.store)
    assert_tracked(results, mixsweep.home / "mlflow.db")
