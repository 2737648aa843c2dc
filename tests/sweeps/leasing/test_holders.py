"""Holder: the description of a study's driver and of its present activity."""

import dataclasses
import json
import os
import re
import socket
import time
from datetime import datetime
from pathlib import Path

import pytest

from mixup_core.store.json_records import LATEST_MS, filled
from sweeps.leasing.holders import (
    Heartbeat,
    Holder,
    RunningRun,
    StudyBusyError,
    checked,
)

HOLDER = Holder(
    token=41, host="node-a", boot_id="b", pid=7, started_at_ms=1_795_298_400_000, command="run"
)
PROGRESS = Heartbeat(
    token=41, running=(RunningRun(arm="erm", seed=1, epoch=0),), updated_at_ms=5, seconds_left=0.5
)


def test_the_holder_describes_the_pid_host_and_boot_of_this_process() -> None:
    before = time.time_ns() // 1_000_000
    holder = Holder.here(3, "mixsweep run table1")
    after = time.time_ns() // 1_000_000
    assert (holder.token, holder.command) == (3, "mixsweep run table1")
    assert (holder.pid, holder.host) == (os.getpid(), socket.gethostname())
    assert before <= holder.started_at_ms <= after
    boot = Path("/proc/sys/kernel/random/boot_id")
    assert holder.boot_id == (boot.read_text().rstrip("\n") if boot.exists() else None)


def test_a_holder_is_read_back_with_fields_of_later_versions_ignored() -> None:
    plain = json.loads(json.dumps(dataclasses.asdict(HOLDER)))
    assert filled(Holder, plain) == HOLDER
    assert filled(Holder, {"format": 2, **plain, "cluster": {"nodes": 3}}) == HOLDER
    no_boot = {name: value for name, value in plain.items() if name != "boot_id"}
    assert filled(Holder, no_boot) == dataclasses.replace(HOLDER, boot_id=None)


@pytest.mark.parametrize("field", ["token", "host", "pid", "started_at_ms", "command"])
def test_a_holder_with_a_missing_field_is_read_as_unknown(field: str) -> None:
    plain = dataclasses.asdict(HOLDER)
    del plain[field]
    assert filled(Holder, plain) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"token": "7"},
        {"token": True},
        {"token": 0},
        {"token": -1},
        {"pid": None},
        {"host": 5},
        {"boot_id": 5},
        {"started_at_ms": 10**18},
        {"started_at_ms": LATEST_MS + 1},
        {"started_at_ms": -1},
        {"started_at_ms": 0.5},
        {"command": None},
    ],
)
def test_a_holder_with_a_value_of_the_wrong_type_is_read_as_unknown(
    changes: dict[str, object],
) -> None:
    assert filled(Holder, dataclasses.asdict(HOLDER) | changes) is None


@pytest.mark.parametrize("changes", [{"token": 1}, {"started_at_ms": 0}])
def test_token_1_and_time_0_of_a_holder_are_valid(changes: dict[str, int]) -> None:
    plain = dataclasses.asdict(HOLDER) | changes
    found = filled(Holder, plain)
    assert found is not None
    assert dataclasses.asdict(found) == plain


def test_the_latest_valid_time_of_a_holder_can_be_shown() -> None:
    found = filled(Holder, dataclasses.asdict(HOLDER) | {"started_at_ms": LATEST_MS})
    assert re.fullmatch(
        r"pid 7 on node-a since 989[123]-\d\d-\d\d \d\d:\d\d \(token 41\)", str(found)
    )


def test_a_holder_of_today_is_shown_with_its_time_only() -> None:
    holder = Holder.here(2, "run")
    since = datetime.fromtimestamp(holder.started_at_ms / 1000).strftime("%H:%M")
    expected = f"pid {os.getpid()} on {socket.gethostname()} since {since} (token 2)"
    assert str(holder) == expected


@pytest.mark.parametrize("days", [2, 366, 20_000])
def test_a_holder_of_another_day_is_shown_with_its_date(days: int) -> None:
    then = Holder.here(2, "run").started_at_ms - days * 86_400_000
    since = datetime.fromtimestamp(then / 1000).strftime("%Y-%m-%d %H:%M")
    holder = dataclasses.replace(HOLDER, started_at_ms=then)
    assert str(holder) == f"pid 7 on node-a since {since} (token 41)"


def test_progress_holds_a_copy_of_the_running_runs_and_the_current_time() -> None:
    running = [RunningRun(arm="erm", seed=0, epoch=7), RunningRun(arm="midpoint", seed=1, epoch=0)]
    before = time.time_ns() // 1_000_000
    progress = Heartbeat.now(3, running, 12.5)
    assert before <= progress.updated_at_ms <= time.time_ns() // 1_000_000
    running.clear()
    assert [run.arm for run in progress.running] == ["erm", "midpoint"]
    assert (progress.token, progress.seconds_left) == (3, 12.5)
    assert Heartbeat.now(3, ()).seconds_left is None


@pytest.mark.parametrize("seconds", [0.5, 3, None])
def test_progress_is_read_back_from_json_with_fields_of_later_versions_ignored(
    seconds: float | None,
) -> None:
    progress = dataclasses.replace(PROGRESS, seconds_left=seconds)
    plain = json.loads(json.dumps(dataclasses.asdict(progress)))
    assert filled(Heartbeat, plain) == progress
    plain["running"][0]["loss"] = 0.5
    assert filled(Heartbeat, {**plain, "nodes": 3}) == progress


def test_progress_without_the_remaining_time_can_be_read() -> None:
    plain = dataclasses.asdict(PROGRESS)
    del plain["seconds_left"]
    assert filled(Heartbeat, plain) == dataclasses.replace(PROGRESS, seconds_left=None)


@pytest.mark.parametrize(
    "changes",
    [
        {"token": None},
        {"running": None},
        {"running": {"arm": "erm"}},
        {"running": [{"arm": "erm", "seed": 0}]},
        {"running": [{"arm": "erm", "seed": "0", "epoch": 0}]},
        {"updated_at_ms": "5"},
        {"seconds_left": True},
        {"seconds_left": "soon"},
    ],
)
def test_progress_with_a_value_of_the_wrong_type_is_read_as_unknown(
    changes: dict[str, object],
) -> None:
    assert filled(Heartbeat, dataclasses.asdict(PROGRESS) | changes) is None


@pytest.mark.parametrize(("holder", "by"), [(HOLDER, str(HOLDER)), (None, "another process")])
def test_the_message_for_a_busy_study_names_the_other_driver(
    holder: Holder | None, by: str
) -> None:
    busy = StudyBusyError("table1", holder)
    advice = "wait until it ends, or run `mixsweep stop table1`"
    assert str(busy) == f"study 'table1' is already run by {by}; {advice}"
    assert busy.holder == holder


@pytest.mark.parametrize("study", ["a", "0", "table1-cifar10", "a" * 100])
def test_a_valid_study_name_is_returned_unchanged(study: str) -> None:
    assert checked(study) == study


@pytest.mark.parametrize(
    "study", ["", "../x", "a/b", "a.b", "a_b", "Table1", "\u00e9", "a" * 101, "a\n", " a"]
)
def test_an_invalid_study_name_is_refused(study: str) -> None:
    with pytest.raises(ValueError, match="1 to 100 characters of a-z, 0-9 and -") as caught:
        checked(study)
    assert str(caught.value) == (
        f"study must be 1 to 100 characters of a-z, 0-9 and -, got (study={study!r})."
    )
