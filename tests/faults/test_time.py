"""A wall clock that jumps back and forward during a launch."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from mixup_core.store.manifests import EpochFacts
from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300, func_only=True),
]

DAY = 86_400
QUICK = Task(TWO_LAWS.file, ("base.model={name: mlp}", "base.epochs=60", "seeds=4"))


def test_a_clock_set_back_and_forward_by_a_day_changes_no_result(
    command_line: CommandLines,
    run_undisturbed: Callable[[Task], CommandLine],
    interposed: str,
    tmp_path: Path,
) -> None:
    shift = tmp_path / "shift"
    _set(shift, 0)
    mixsweep = command_line(LD_PRELOAD=interposed, CLOCK_SHIFT=str(shift))
    with Launch(mixsweep, QUICK) as launch:
        for seconds in (-DAY, DAY, -DAY):
            before = len(_facts(launch))
            wait_for(lambda: launch.process.poll() is not None or len(_facts(launch)) > before)  # noqa: B023
            _set(shift, seconds)
        launch.end(0)
    stored = {facts.stored_at_ms for facts in _facts(launch)}
    assert max(stored) - min(stored) > 1000 * DAY, "the clock did not move"
    assert_nothing_was_lost(QUICK, mixsweep, run_undisturbed(QUICK))
    _set(shift, -2 * DAY)
    assert "nothing to train" in mixsweep("run", *QUICK.arguments, "--keep-final-states").stderr
    assert mixsweep.json("status", *QUICK.arguments)["driver"] is None


def _set(shift: Path, seconds: int) -> None:
    """Set the clock by changing the mapped file in place."""
    if not shift.exists():
        shift.write_bytes(struct.pack("l", 0))
    with shift.open("r+b") as file:
        file.write(struct.pack("l", seconds))


def _facts(launch: Launch) -> list[EpochFacts]:
    return [facts for of_run in QUICK.acknowledged(launch.store).values() for facts in of_run]
