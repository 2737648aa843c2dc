"""A launch is stopped by another process that can read its store."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import CommandLine, CommandLines

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

STUDY = ("digits", "--set", "seeds=30", "--set", "base.epochs=40")


def _started(mixsweep: CommandLine, *options: str) -> "subprocess.Popen[str]":
    before = mixsweep.json("status", *STUDY)["epochs"]["done"]
    process = mixsweep.start("run", *STUDY, "--slots", "1", *options)
    while mixsweep.json("status", *STUDY)["epochs"]["done"] == before:
        assert process.poll() is None, process.communicate()
        time.sleep(0.5)
    return process


def test_stop_lets_runs_finish_and_stop_now_interrupts_them(
    command_line: CommandLines, tmp_path: Path
) -> None:
    mixsweep, told = command_line(), tmp_path / "told"
    nothing = mixsweep("stop", "digits")
    assert "not running" in nothing.stderr
    process = _started(
        mixsweep, "--on-finish", f'echo "$MIXSWEEP_STUDY $MIXSWEEP_EXIT_CODE" >{told}'
    )
    said = mixsweep("stop", "digits")
    assert f"pid {process.pid} on" in said.stderr
    _, err = process.communicate(timeout=200)
    assert process.returncode == 1, err
    assert err.count("asked to stop: no more runs start") == 1
    status = mixsweep.json("status", *STUDY)
    finished = sum(arm["finished"] for arm in status["arms"].values())
    assert 0 < finished < 90
    assert status["epochs"]["done"] == 40 * finished, "no run was cut"
    assert told.read_text() == "digits 1\n"
    assert f"{finished}/90" in mixsweep("status").stdout

    process = _started(mixsweep)
    mixsweep("stop", "digits", "--now")
    _, err = process.communicate(timeout=200)
    assert process.returncode == 130, err
