"""Processes that live, have ended, or are descendants of this one."""

import subprocess
import sys

import psutil
import pytest

from sweeps.machine.processes import lives, user, wait_for_end
from tests.interpreters import run_python, start_python

_PARENT = """
import subprocess, sys
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
sys.stdin.read()
"""

_ENDING = """
import subprocess, psutil
from sweeps.machine.processes import end_children, lives
shell = subprocess.Popen(["sh", "-c", "sleep 60 & echo begun; wait"], stdout=subprocess.PIPE)
shell.stdout.readline()
below = psutil.Process().children(recursive=True)
end_children()
gone, alive = psutil.wait_procs(below, timeout=10)
print(len(gone), len(alive))
"""


def test_the_name_of_a_user_is_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "me\x1b[31m\udc80")
    assert user() == "me\\x1b[31m\\udc80"


def test_a_zombie_process_counts_as_ended() -> None:
    parent = start_python(_PARENT, stdin=subprocess.PIPE)
    assert parent.stdin is not None
    child = psutil.Process(int(parent.stdout.readline()))
    assert lives(child)
    child.kill()
    wait_for_end([child], timeout=60)  # longer than a test may take
    assert child.status() == psutil.STATUS_ZOMBIE  # its parent has not asked
    assert not lives(child)
    parent.communicate()


def test_all_descendant_processes_are_ended() -> None:
    assert run_python(_ENDING, check=True).stdout.split() == ["2", "0"]


_SPARING = """
import os, subprocess, psutil
from sweeps.machine.processes import end_children, lives, spare_children
(before,) = psutil.Process().children()
spare_children()
after = subprocess.Popen(["sleep", "60"])
end_children()
after.wait()
left = before.children(recursive=True)
print(lives(before), len(left), all(map(lives, left)))
for process in (before, *left):
    process.kill()
"""


def test_children_from_before_the_command_and_their_descendants_are_spared() -> None:
    started = 'sh -c "sleep 60 & wait" & sleep 0.3; exec "$0" -c "$1"'
    ended = subprocess.run(
        ["sh", "-c", started, sys.executable, _SPARING],
        check=True,
        capture_output=True,
        text=True,
    )
    assert ended.stdout.split() == ["True", "1", "True"]
