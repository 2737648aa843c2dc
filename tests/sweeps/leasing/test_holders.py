"""Holder: the description of a study's driver and of its present activity."""

import dataclasses
import json
import os
import socket
import time
from pathlib import Path

import pytest

from mixup_core.store.json_records import filled
from sweeps.leasing.holders import (
    Holder,
    checked,
)

HOLDER = Holder(
    token=41, host="node-a", boot_id="b", pid=7, started_at_ms=1_795_298_400_000, command="run"
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


@pytest.mark.parametrize(
    "study", ["", "../x", "a/b", "a.b", "a_b", "Table1", "\u00e9", "a" * 101, "a\n", " a"]
)
def test_an_invalid_study_name_is_refused(study: str) -> None:
    with pytest.raises(ValueError, match="1 to 100 characters of a-z, 0-9 and -") as caught:
        checked(study)
    assert str(caught.value) == (
        f"study must be 1 to 100 characters of a-z, 0-9 and -, got (study={study!r})."
    )
