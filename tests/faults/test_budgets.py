"""A search on simulated GPUs ends when its budget of GPU-hours is used up."""

from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study
from sweeps.searching.search_history import read_history
from sweeps.state.results import read_results
from tests.conftest import CommandLines
from tests.faults.nodes import Nodes

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300, func_only=True)]

BUDGET = 0.002
STUDY = f"""
study: on-gpus
base:
  data: {{name: digits, val_size: 300}}
  model: {{name: mlp}}
  epochs: 10
  batch_size: 64
arms:
  erm: {{mix.law: erm}}
seeds: 2
search:
  space:
    mix.law: {{beta: {{log_uniform: [0.1, 32.0]}}}}
  points: 1000
  objective: val/error
  budget: {{gpu_hours: {BUDGET}}}
"""


@pytest.mark.parametrize(("share", "slots"), [("1", "1"), ("0.5", "2")])
def test_a_budget_of_gpu_hours_ends_a_search_once_they_are_spent(
    command_line: CommandLines, nodes: Nodes, tmp_path: Path, share: str, slots: str
) -> None:
    file = tmp_path / "on-gpus.yaml"
    file.write_text(STUDY)
    nodes.add(cpus=2, gpus=1)
    mixsweep = command_line(**nodes.environment)
    options = ("--gpus-per-run", share, "--device", "cpu", "--slots", slots)
    said = mixsweep("run", str(file), *options)
    study = load_study(str(file))
    history = read_history(study, Home(folder=mixsweep.home).optuna_url)
    ended = f"used up its budget of {BUDGET} GPU-hours, after {len(history.points)} points"
    assert f"on-gpus: the search {ended}" in said.stderr

    def gpu_hours(num_points: int) -> float:
        grown = study.grown(history.points[:num_points])
        results = read_results(grown.runs(), Store(str(mixsweep.home / "store")))
        assert {result.outcome for result in results} == {"complete"}
        return sum(f.seconds for r in results for f in r.facts) / 3600 * float(share)

    num_points = len(history.points)
    assert num_points >= int(slots)
    assert gpu_hours(num_points) >= BUDGET
    # A point is asked for while one run at most of the point before it is on the other slot.
    assert gpu_hours(num_points - int(slots)) < BUDGET
