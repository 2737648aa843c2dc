"""A study that adds seeds until its claims are decided takes the same looks after any kill."""

from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from reports.numbers.looks import reached_study
from sweeps.state.results import read_results
from sweeps.state.statements import stated_in
from tests.conftest import CommandLines
from tests.faults.launches import Launch, Task, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600, func_only=True)]

TASK = Task(str(Path(__file__).with_name("until-decided.yaml")))
EXPORTS = ("runs.csv", "tables/verdicts.csv", "tables/looks.csv", "table.csv")


def finished(home: Path) -> int:
    """Return how many runs of the study are stored completely."""
    results = read_results(TASK.study.runs(), Store(str(home / "store")))
    return sum(result.outcome == "complete" for result in results)


@pytest.mark.long
def test_drivers_killed_between_and_within_looks_give_the_report_of_an_unbroken_launch(
    command_line: CommandLines,
) -> None:
    whole, killed = command_line(), command_line()
    whole("run", TASK.file, "--engine", "inline")
    number = finished(whole.home)
    first, open_later = 6, number - 6
    assert open_later > 4, "several looks are taken"
    # In the first look, as it ends, in a later look; by both engines.
    for stored, engine in ((2, "inline"), (first, "ray"), (number - 2, "inline")):
        options, slots = (("--engine", engine), 2 if engine == "ray" else None)
        with Launch(killed, TASK, *options, slots=slots) as launch:
            wait_for(lambda least=stored: finished(killed.home) >= least)  # type: ignore[misc]
            launch.process.kill()
            launch.process.wait()
    stated = stated_in("until-decided", Store(str(killed.home / "store")))
    assert {each.shown for each in stated.values()} == {(TASK.study.until.plan,)}
    assert {each.looks for each in stated.values()} == {0}, "no report was written"
    killed("run", TASK.file, "--slots", "2")
    for name in EXPORTS:
        assert killed.report("until-decided", name) == whole.report("until-decided", name)
    stores = [Store(str(home.home / "store")) for home in (whole, killed)]
    reached = [reached_study(TASK.study, store) for store in stores]
    assert reached[0].reached == reached[1].reached
    assert finished(killed.home) == number == len(reached[0].runs())
