from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mixup_core.records import EpochRecord
from mixup_core.store.manifests import EpochFacts, Stage
from sweeps.state.results import TRIED, RunResult
from tests.faults.launches import TWO_LAWS, Task
from tests.soak.kills import (
    ENDS_WITHIN,
    INTERVAL_SECONDS,
    Toll,
    broken,
    losses,
)


def _stored_at(*times: int) -> tuple[EpochFacts, ...]:
    return tuple(EpochFacts(seconds=1.0, stored_at_ms=time) for time in times)


FORKS = Task(str(Path(TWO_LAWS.file).with_name("forks.yaml")))


def _trained_by(number: int, *, pid: int, stored_at_ms: int) -> RunResult:
    """Return the first run with a stage that the run with the given number has trained."""
    runs = FORKS.study.runs()
    stage = Stage(
        key="any",
        records=[EpochRecord(epoch=0, metrics={"train/loss": 1.0})],
        facts=_stored_at(stored_at_ms),
        environment={"pid": str(pid), TRIED: f"{runs[number].key} 1"},
        state=None,
    )
    return RunResult(run=runs[0], stage=stage, failure=None)


def test_a_killed_run_loses_the_time_since_its_last_stored_stage() -> None:
    result = _trained_by(0, pid=7, stored_at_ms=2000)
    assert losses([result], [7], since_ms=1000, at_ms=4500) == {result.run.key: (2.5, 2)}
    assert losses([result], [8], since_ms=1000, at_ms=4500) == {}


def test_a_run_that_waits_with_the_epochs_of_another_loses_nothing() -> None:
    waiting = _trained_by(1, pid=7, stored_at_ms=2000)
    assert losses([waiting], [7], since_ms=1000, at_ms=40_000) == {}


def test_a_process_of_an_earlier_launch_with_the_same_pid_loses_nothing() -> None:
    earlier = _trained_by(0, pid=7, stored_at_ms=900)
    assert losses([earlier], [7], since_ms=1000, at_ms=40_000) == {}


def test_enough_kills_within_the_limits_break_no_promise() -> None:
    toll = Toll(kills=Counter(worker=2), seconds_to_end=[ENDS_WITHIN], seconds_redone=[60.0])
    toll.epochs_redone = [1]  # of an epoch longer than an interval the last one may be lost
    assert broken(toll, kills=2) == []
    assert broken(toll, kills=3) == ["2 of 3 kills"]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"launches_without_own_words": 3}, "3 launches that did not say what was gone"),
        ({"seconds_to_end": [1.0, 15.1]}, "1 launches that took more than 15 s to end"),
        (
            {"seconds_redone": [INTERVAL_SECONDS + 1], "epochs_redone": [2]},
            "1 runs that lost more than an interval",
        ),
        ({"left_behind": ["sweep-0: ray"]}, "left behind: sweep-0: ray"),
        ({"violations": ["sweep-0: other weights"]}, "sweep-0: other weights"),
    ],
)
def test_every_broken_promise_is_reported(found: dict[str, Any], told: str) -> None:
    assert broken(Toll(**found), kills=0) == [told]
