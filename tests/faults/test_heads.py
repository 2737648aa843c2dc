"""Ray's own processes of a launch are killed, and the same command is typed again."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sweeps.machine.processes import lives
from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task, wait_for

pytestmark = [pytest.mark.long, pytest.mark.timeout(300, func_only=True)]

LONGER = Task(TWO_LAWS.file, ("base.epochs=144",))
"""A study long enough to have runs left after the loss of the head is noticed, on any machine."""


@pytest.mark.parametrize("name", ["gcs_server", "raylet"])
def test_a_launch_that_loses_its_cluster_reports_the_loss_and_the_next_launch_resumes(
    command_line: CommandLines,
    run_undisturbed: Callable[[Task], CommandLine],
    name: str,
) -> None:
    mixsweep = command_line()
    scratch = Path(mixsweep.environment()["TMPDIR"])
    with Launch(mixsweep, LONGER) as launch:
        launch.worker(epochs=5)
        acknowledged = LONGER.acknowledged(launch.store)
        (folder,) = scratch.glob(f"mixsweep-{launch.process.pid}-*")
        below = psutil.Process(launch.process.pid).children(recursive=True)
        (victim,) = (process for process in below if process.name() == name)
        victim.kill()
        said = launch.end(1).stderr
    assert f"the Ray cluster has died: Ray's process {name} (pid {victim.pid}) has ended" in said
    assert "run the same command again to continue" in said
    assert "Traceback" not in said
    wait_for(lambda: not any(map(lives, below)), timeout=10)
    assert not folder.exists()
    assert mixsweep.json("status", *LONGER.arguments)["driver"] is None
    with Launch(mixsweep, LONGER) as launch:
        launch.end(0)
    assert_nothing_was_lost(LONGER, mixsweep, run_undisturbed(LONGER), acknowledged=acknowledged)
