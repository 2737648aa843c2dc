from dataclasses import asdict
from typing import Any

import pytest

from mixup_core.store.json_records import filled
from sweeps.leasing.holders import Heartbeat, RunningRun, checked


@pytest.mark.parametrize(
    "study", ["", "../x", "a/b", "a.b", "a_b", "Table1", "\u00e9", "a" * 101, "a\n", " a", "-a"]
)
def test_an_invalid_study_name_is_refused(study: str) -> None:
    with pytest.raises(ValueError, match="study must match") as caught:
        checked(study)
    assert str(caught.value) == (
        f"study must match [a-z0-9][a-z0-9-]{{0,99}}, got (study={study!r})."
    )


@pytest.mark.parametrize("seconds_left", [None, 0.0, 3600.0, 1e300])
def test_a_progress_report_of_any_estimate_can_be_read(seconds_left: float | None) -> None:
    run = RunningRun(arm="a", seed=0, epoch=1, within=1.0)
    beat = Heartbeat.now(1, [run], seconds_left)
    assert filled(Heartbeat, asdict(beat)) == beat


@pytest.mark.parametrize(
    "changes",
    [
        {"seconds_left": 1e308},
        {"seconds_left": -5.0},
        {"running": [{"arm": "a", "seed": 0, "epoch": 1, "within": 1e308}]},
        {"running": [{"arm": "a", "seed": 0, "epoch": 1, "within": -0.5}]},
    ],
)
def test_a_progress_report_with_impossible_numbers_is_no_report(changes: dict[str, Any]) -> None:
    assert filled(Heartbeat, asdict(Heartbeat.now(1, [])) | changes) is None
