"""The inline engine survives the same faults as Ray, with the same bits at the end."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]


def test_a_killed_inline_launch_without_ray_mlflow_and_optuna_gives_the_results_of_ray(
    command_line: CommandLines, undisturbed: CommandLine, tmp_path: Path
) -> None:
    for module in ("ray", "mlflow", "optuna"):
        (tmp_path / f"{module}.py").write_text(f"raise ImportError({module!r})\n")
    here = str(Path(__file__).parents[2])
    mixsweep = command_line()
    bare = command_line(mixsweep.home, PYTHONPATH=os.pathsep.join([str(tmp_path), here]))
    options = ("--engine", "inline", "--until", "3600")
    first, second = TWO_LAWS.study.runs()[:2]
    with Launch(bare, TWO_LAWS, *options, slots=None) as launch:
        launch.stage(first, epochs=4)
        launch.process.kill()
        launch.process.wait()
    acknowledged = TWO_LAWS.acknowledged(launch.store)
    with Launch(bare, TWO_LAWS, *options, slots=None) as launch:
        launch.stage(second, epochs=4)
        os.kill(launch.process.pid, signal.SIGTERM)
        assert "interrupted" in launch.end(130).stderr
    acknowledged = {**acknowledged, **TWO_LAWS.acknowledged(launch.store)}
    with Launch(bare, TWO_LAWS, *options, slots=None) as launch:
        assert "tracking is incomplete: MLflow is not installed" in launch.end(0).stderr
    mixsweep("sync", *TWO_LAWS.arguments)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged)


WITHOUT_PROC = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /proc; exec "$@"', "sh")
HIDDEN = """
import os, subprocess, sys
from dataclasses import asdict, replace
from sweeps.leasing.bucket_lease import _has_died_here, _namespace
from sweeps.leasing.holders import Holder
subprocess.run(["mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"], check=True)
with subprocess.Popen(["sleep", "100"]) as driver:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
    print(os.path.exists(f"/proc/{driver.pid}"), end=" ")
    record = asdict(replace(Holder.here(1, "run"), pid=driver.pid)) | {"namespace": _namespace()}
    print(_has_died_here(record), _has_died_here(record | {"pid": 4_000_000}), flush=True)
    os._exit(0)
"""


def test_a_driver_of_another_user_lives_although_proc_hides_it() -> None:
    asked = ["unshare", "--mount", "--pid", "--fork", "--kill-child", sys.executable, "-c", HIDDEN]
    done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout == "False False True\n", done.stderr


WITHOUT_CALLS_OF_LINUX = """
import ctypes, os, select, signal, time
for module, words in (
    (os, "sched_ pidfd_ eventfd memfd_ splice copy_file posix_fa fdatasync pipe2 getres O_TMPFILE"),
    (select, "epoll EPOLL"), (signal, "sigtimedwait sigwaitinfo SIGRT SIGPWR SIGSTKFLT"),
    (time, "CLOCK_BOOTTIME"),
):
    for name in dir(module):
        if name.startswith(tuple(words.split())):
            delattr(module, name)

class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name in {"prctl", "mallopt"}:
            raise AttributeError(name)
        return super().__getattr__(name)

ctypes.CDLL = Library
"""


def test_without_calls_of_linux_a_killed_inline_launch_resumes_and_ray_is_refused(
    command_line: CommandLines, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_CALLS_OF_LINUX)
    here = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    killed, other = (replace(command_line(PYTHONPATH=here), prefix=WITHOUT_PROC) for _ in range(2))
    task = Task("digits", ("base.epochs=12", "seeds=1"))
    inline = ("--engine", "inline")
    with Launch(killed, task, *inline, slots=None) as launch:
        launch.stage(task.study.runs()[0], epochs=2)
        launch.process.kill()
    acknowledged = task.acknowledged(launch.store)
    for mixsweep in (killed, other):
        mixsweep("run", *task.arguments, *inline, "--keep-final-states")
    assert_nothing_was_lost(task, killed, other, acknowledged=acknowledged)
    assert "done" in killed("status", *task.arguments).stdout
    assert "Ray needs /proc" in killed("run", "digits", code=2).stderr
