import subprocess
import sys
from typing import Any

import psutil
import pytest

from sweeps.machine.processes import lives
from sweeps.machine.signals import GOES_ON, INTERRUPTED

SCRIPT = """
import signal, subprocess, sys, threading, time
from sweeps.machine.forced_end import ended_if_interrupted
from sweeps.machine.signals import hear

def leave():
    print("left", flush=True)
    {leave}

hear()
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
with ended_if_interrupted(leave, patience=0.2):
    try:
        signal.raise_signal(signal.{number})
    except KeyboardInterrupt:
        pass
    {block}
print("went on", flush=True)
child.kill()
"""
WAIT_FOR_A_LOCK = "lock = threading.Lock(); lock.acquire(); lock.acquire()"


def run(number: str, block: str, leave: str = "pass", **environment: str) -> Any:
    script = SCRIPT.format(number=number, block=block, leave=leave)
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_process_that_waits_for_a_lock_after_an_interrupt_is_ended(number: str) -> None:
    done = run(number, WAIT_FOR_A_LOCK)
    pid, said = done.stdout.split()
    assert (done.returncode, said, done.stderr) == (INTERRUPTED, "left", f"{GOES_ON}\n")
    assert not (psutil.pid_exists(int(pid)) and lives(psutil.Process(int(pid))))


def test_a_process_is_ended_although_its_cleanup_never_returns() -> None:
    done = run("SIGINT", WAIT_FOR_A_LOCK, leave="threading.Event().wait()")
    assert (done.returncode, done.stderr) == (INTERRUPTED, f"{GOES_ON}\n")


def test_pythonfaulthandler_prints_the_stacks_of_all_threads() -> None:
    done = run("SIGINT", WAIT_FOR_A_LOCK, PYTHONFAULTHANDLER="1")
    assert done.returncode == INTERRUPTED
    assert "Current thread" in done.stderr
    assert done.stderr.endswith(f"{GOES_ON}\n")


@pytest.mark.parametrize(("number", "block"), [("SIGINT", "pass"), ("SIGCONT", "time.sleep(1.0)")])
def test_a_block_that_ends_soon_or_was_not_interrupted_is_not_ended(
    number: str, block: str
) -> None:
    done = run(number, block)
    assert (done.returncode, done.stdout.split()[1:], done.stderr) == (0, ["went", "on"], "")
