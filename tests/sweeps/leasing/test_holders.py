"""Holder: the description of a study's driver and of its present activity."""

import os
import socket
import time
from pathlib import Path

import pytest

from sweeps.leasing.holders import Holder, checked


def test_the_holder_describes_the_pid_host_and_boot_of_this_process() -> None:
    before = time.time_ns() // 1_000_000
    holder = Holder.here(3, "mixsweep run table1")
    after = time.time_ns() // 1_000_000
    assert (holder.token, holder.command) == (3, "mixsweep run table1")
    assert (holder.pid, holder.host) == (os.getpid(), socket.gethostname())
    assert before <= holder.started_at_ms <= after
    boot = Path("/proc/sys/kernel/random/boot_id")
    assert holder.boot_id == (boot.read_text().rstrip("\n") if boot.exists() else None)


@pytest.mark.parametrize(
    "study", ["", "../x", "a/b", "a.b", "a_b", "Table1", "\u00e9", "a" * 101, "a\n", " a", "-a"]
)
def test_an_invalid_study_name_is_refused(study: str) -> None:
    with pytest.raises(ValueError, match="study must match") as caught:
        checked(study)
    assert str(caught.value) == (
        f"study must match [a-z0-9][a-z0-9-]{{0,99}}, got (study={study!r})."
    )
