"""The inline engine survives the same faults as Ray, with the same bits at the end."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CommandLine
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]


def test_a_killed_inline_launch_without_ray_mlflow_and_optuna_gives_the_results_of_ray(
    command_line: Callable[..., CommandLine], undisturbed: CommandLine, tmp_path: Path
) -> None:
    for module in ("ray", "mlflow", "optuna"):
        (tmp_path / f"{module}.py").write_text(f"raise ImportError({module!r})\n")
    here = str(Path(__file__).parents[2])
    mixsweep = command_line()
    bare = command_line(mixsweep.home, PYTHONPATH=os.pathsep.join([str(tmp_path), here]))
    options = ("--engine", "inline", "--until", "3600")
    first, second = TWO_LAWS.study.runs()[:2]
    with Launch(bare, TWO_LAWS, *options, slots=None) as launch:
        launch.stage(first, epochs=4)
        launch.process.kill()
        launch.process.wait()
    acknowledged = TWO_LAWS.acknowledged(launch.store)
    with Launch(bare, TWO_LAWS, *options, slots=None) as launch:
        launch.stage(second, epochs=4)
        os.kill(launch.process.pid, signal.SIGTERM)
        assert "interrupted" in launch.end(130).stderr
    acknowledged = {**acknowledged, **TWO_LAWS.acknowledged(launch.store)}
    with Launch(bare, TWO_LAWS, *options, slots=None) as launch:
        assert "when MLflow is installed" in launch.end(0).stderr
    mixsweep("sync", *TWO_LAWS.arguments)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged)
