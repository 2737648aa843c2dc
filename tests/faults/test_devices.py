"""Broken devices, on simulated GPUs: runs go on elsewhere, the fault is named.

No GPU is available here: processes of a node raise the errors that PyTorch raises for a broken GPU.
"""

import os
from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from sweeps.state.results import RunResult
from sweeps.study.budget import GPUS_PER_RUN
from tests.conftest import CommandLine, CommandLines
from tests.faults.launches import Launch, Task
from tests.faults.nodes import MANY_RUNS, Nodes, gpu_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

SABOTAGE = """
import os, pathlib, time
from mixup_core.problem import Problem
start, faults = Problem.start, pathlib.Path({faults!r})

def broken(self, config, *others, **more):
    if {when}:
        with faults.open("a") as file:
            file.write("x")
        raise RuntimeError({error!r})
    while faults.stat().st_size < {wait_for}:
        time.sleep(0.1)
    return start(self, config, *others, **more)

Problem.start = broken
"""
ILLEGAL = "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be late"
IS_ONE_RUN = "'Erm' in str(config.mix.law) and config.seed == 0"
"""Condition that is true for one run of the study."""


def _sabotaged(folder: Path, when: str, error: str, wait_for: int = 0) -> dict[str, str]:
    """Return an environment whose Python processes raise an error where a run starts; the other
    runs start after so many errors."""
    folder.mkdir()
    faults = folder / "faults"
    faults.touch()
    (folder / "sitecustomize.py").write_text(
        SABOTAGE.format(when=when, error=error, faults=str(faults), wait_for=wait_for)
    )
    here = str(Path(__file__).parents[2])
    return {"PYTHONPATH": os.pathsep.join([str(folder), here])}


def _ends(mixsweep: CommandLine, seeds: int, code: int) -> tuple[str, list[RunResult], Path]:
    """Return the output of a launch on whole GPUs, its results, and its store."""
    task = Task(MANY_RUNS, (f"seeds={seeds}",))
    with Launch(mixsweep, task, "--gpus-per-run", "1", "--device", "cpu", slots=None) as launch:
        said = launch.end(code).stderr
    return said, list(task.results(launch.store)), Path(launch.store)


def test_runs_of_a_faulty_gpu_finish_on_the_other_and_the_faulty_one_is_reported(
    command_line: CommandLines, nodes: Nodes, tmp_path: Path
) -> None:
    is_sick = "os.environ.get('CUDA_VISIBLE_DEVICES') == '1'"
    sabotaged = _sabotaged(tmp_path / "node", is_sick, ILLEGAL, wait_for=2)
    nodes.add(cpus=2, gpus=2, environment=sabotaged)
    said, results, _ = _ends(command_line(**nodes.environment), seeds=3, code=0)
    assert [result.outcome for result in results] == ["complete"] * len(results)
    assert {gpu_of(result)[1] for result in results} == {"0"}
    shares = [result.stage.environment[GPUS_PER_RUN] for result in results if result.stage]
    assert set(shares) == {"1"}, "a budget of GPU-hours counts them"
    assert "GPU 1 of node" in said
    assert "2 different runs in a row failed on this device" in said
    assert said.count("is tried again") == 2, "a device that is known as sick gets no third run"
    assert "devices that got no more runs: GPU 1 of node" in said
    assert "Traceback" not in said


@pytest.mark.long
def test_a_run_that_breaks_its_process_fails_once_and_the_next_run_has_a_new_process(
    command_line: CommandLines, nodes: Nodes, tmp_path: Path
) -> None:
    error = "CUDA error: device-side assert triggered"
    nodes.add(cpus=1, gpus=1, environment=_sabotaged(tmp_path / "node", IS_ONE_RUN, error))
    said, results, store = _ends(command_line(**nodes.environment), seeds=2, code=1)
    assert sorted(result.outcome for result in results) == ["complete"] * 5 + ["failed"]
    (failure,) = Store(str(store)).failures.read_all().values()
    assert failure.message == f"RuntimeError: {error}"
    assert "is tried again" not in said
    assert "devices that got no more runs" not in said


@pytest.mark.long
def test_a_launch_with_only_faulty_gpus_ends_with_the_error_of_the_driver(
    command_line: CommandLines, nodes: Nodes, tmp_path: Path
) -> None:
    no_driver = _sabotaged(tmp_path / "node", "True", "Found no NVIDIA driver on your system.")
    nodes.add(cpus=2, gpus=2, environment=no_driver)
    said, results, _ = _ends(command_line(**nodes.environment), seeds=2, code=1)
    assert "Found no NVIDIA driver" in said
    assert all(result.outcome in {"failed", "missing"} for result in results)
