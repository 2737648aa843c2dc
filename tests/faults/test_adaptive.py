"""Studies whose next runs depend on results: the same runs and report after any kills."""

import random
from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from tests.conftest import CommandLine, CommandLines
from tests.faults.launches import Launch, Task, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900, func_only=True)]

KILLS = 4


def _stages(mixsweep: CommandLine) -> int:
    return len(Store(str(mixsweep.home / "store")).keys())


@pytest.mark.parametrize("name", ["small-search", "until-decided"])
def test_killed_drivers_leave_the_runs_and_report_of_an_unbroken_launch(
    command_line: CommandLines, name: str
) -> None:
    whole, killed = command_line(), command_line()
    task = Task(str(Path(__file__).with_name(f"{name}.yaml")))
    whole("run", task.file, "--slots", "1")
    goals = sorted(random.Random(1).sample(range(1, _stages(whole) - 1), KILLS))
    for number, goal in enumerate(goals):
        inline = ("--engine", "inline") if number % 2 else ()
        with Launch(killed, task, *inline, slots=None if inline else 1) as launch:
            wait_for(lambda least=goal: _stages(killed) >= least)  # type: ignore[misc]
            launch.process.kill()
            launch.process.wait()
    killed("run", task.file, "--slots", "1")
    folder = whole.home / "reports" / name
    for file in (folder / "runs.csv", folder / "table.csv", *(folder / "tables").glob("*.csv")):
        assert killed.report(name, str(file.relative_to(folder))) == file.read_bytes(), file
