"""Studies of other problems than images, killed and launched again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import Launch, Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

CLOSED_FORM = Task(str(Path(__file__).with_name("closed-form.yaml")))
LINE = Task(str(Path(__file__).with_name("line.yaml")))


@pytest.mark.long
@pytest.mark.parametrize(("task", "epochs"), [(CLOSED_FORM, 1), (LINE, 50)], ids=["exact", "line"])
def test_a_killed_driver_and_worker_do_not_change_the_results_of_other_problems(
    command_line: CommandLines,
    run_undisturbed: Callable[[Task], CommandLine],
    task: Task,
    epochs: int,
) -> None:
    mixsweep = command_line()
    first, *_, last = task.study.runs()
    with Launch(mixsweep, task) as launch:
        launch.stage(first, epochs=epochs)
        acknowledged = task.acknowledged(launch.store)
        launch.process.kill()
    before = mixsweep.json("plan", task.file)
    assert before["to_run"] > 0, "every run had ended before the kill"
    with Launch(mixsweep, task, slots=1) as launch:
        if last.config.epochs > 1:
            launch.kill_worker(launch.worker(last, epochs=epochs))
        launch.end(0)
    assert_nothing_was_lost(task, mixsweep, run_undisturbed(task), acknowledged=acknowledged)


@pytest.mark.long
def test_studies_of_one_launch_each_have_their_own_ray_and_report(
    command_line: CommandLines,
) -> None:
    mixsweep = command_line()
    mixsweep("run", CLOSED_FORM.file, LINE.file, "--slots", "2")
    for task in (CLOSED_FORM, LINE):
        assert mixsweep.json("plan", task.file)["to_run"] == 0
        assert (mixsweep.home / "reports" / task.study.name / "table.csv").exists()
