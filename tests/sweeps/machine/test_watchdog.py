import time
from typing import Any

import psutil
import pytest

from sweeps.machine.processes import lives
from sweeps.machine.signals import INTERRUPTED
from tests.interpreters import run_python

SCRIPT = """
import os, signal, subprocess, sys, threading, time
from sweeps.machine.watchdog import cleaned_by_force, ended_if_interrupted
from sweeps.machine.signals import hear, interrupt_main_thread

def leave():
    print("left", flush=True)

hear()
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
with ended_if_interrupted(patience={patience}), cleaned_by_force(leave):
    try:
        {interrupt}
    except KeyboardInterrupt:
        pass
    {block}
print("went on", flush=True)
child.kill()
"""
GOES_ON = "interrupted; the same call continues where this one stopped"
WAIT_FOR_A_LOCK = "lock = threading.Lock(); lock.acquire(); lock.acquire()"


def run(number: str, block: str, patience: float = 0.2) -> Any:
    interrupt = f"signal.raise_signal(signal.{number})" if number.startswith("SIG") else number
    script = SCRIPT.format(interrupt=interrupt, block=block, patience=patience)
    return run_python(script, env={}, timeout=60)


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_process_that_waits_for_a_lock_after_an_interrupt_is_ended(number: str) -> None:
    done = run(number, WAIT_FOR_A_LOCK)
    pid, said = done.stdout.split()
    assert (done.returncode, said, done.stderr) == (INTERRUPTED, "left", f"{GOES_ON}\n")
    assert not (psutil.pid_exists(int(pid)) and lives(psutil.Process(int(pid))))


@pytest.mark.parametrize("wait", [1.0, 0.0])
def test_a_second_signal_ends_a_process_at_once_unless_it_comes_with_the_first(wait: float) -> None:
    second = "signal.signal(signal.SIGHUP, lambda *_: None), os.kill(os.getpid(), signal.SIGHUP)"
    block = f"time.sleep({wait}), {second}, time.sleep(5), print('cleaned up', flush=True)"
    began = time.monotonic()
    done = run("SIGTERM", block, patience=50)
    if wait:
        assert (done.returncode, done.stderr) == (INTERRUPTED, f"{GOES_ON}\n")
        assert done.stdout.split()[1:] == ["left"]
        assert time.monotonic() - began < 20
    else:
        assert (done.returncode, done.stdout.split()[1:3]) == (0, ["cleaned", "up"])


@pytest.mark.parametrize(("number", "block"), [("SIGINT", "pass"), ("SIGCONT", "time.sleep(1.0)")])
def test_a_block_that_ends_soon_or_was_not_interrupted_is_not_ended(
    number: str, block: str
) -> None:
    done = run(number, block)
    assert (done.returncode, done.stdout.split()[1:], done.stderr) == (0, ["went", "on"], "")


def test_a_process_that_interrupted_itself_with_an_ending_is_ended_with_it() -> None:
    done = run("interrupt_main_thread(('taken over', 3)); time.sleep(5)", WAIT_FOR_A_LOCK)
    assert (done.returncode, done.stdout.split()[1:]) == (3, ["left"])
    assert done.stderr == "taken over\n"
