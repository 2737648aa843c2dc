"""Run commands in forks of one interpreter that has imported everything, which saves time.

Each line of standard input is JSON: arguments, environment and working directory of a command, and
the ids of a user and its groups, if root is to become that user. Each answer is JSON: exit code,
standard output and standard error.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

PATIENCE = 240.0
"""Seconds after which a command is killed."""
_IMPORTED = (
    "mixup_core.images.training", "optuna", "reports.pages.build", "sklearn.datasets",
    "sweeps.searching.search_history", "sweeps.tracking.tracker", "sweeps.tracking.study_log",
)  # fmt: skip
"""Modules to import besides `mixsweep.cli.main`; without Ray, because it must not be forked."""


def main() -> None:
    """Run each command when its line arrives."""
    before = dict(os.environ)
    os.environ.update(MPLBACKEND="agg", MATPLOTLIBRC=os.devnull)
    from mixsweep.cli import main as cli
    from sweeps.tracking.connection import load

    load()
    for module in _IMPORTED:
        importlib.import_module(module)
    gc.freeze()  # a collection in a fork would copy every page that was imported
    set_by_imports = {k: v for k, v in os.environ.items() if k not in before}
    lines = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for line in lines:
        request = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                os.setsid()
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                _become(request, set_by_imports)
                _leave(cli.main)
            code = os.waitstatus_to_exitcode(_ended(child))
            said = []
            for file in (out, err):
                file.seek(0)
                said.append(file.read().decode(errors="surrogateescape"))
        answers.write(json.dumps([code, *said]) + "\n")
        answers.flush()


def _become(request: Mapping[str, Any], set_by_imports: Mapping[str, str]) -> None:
    """Give this process the environment, folder and streams of the command."""
    if request["ids"]:
        uid, gid, *groups = request["ids"]
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(set_by_imports | request["environment"])
    tempfile.tempdir = None
    sys.argv = ["mixsweep", *request["arguments"]]
    sys.orig_argv[:] = [sys.executable, "-m", "mixsweep", *request["arguments"]]


def _leave(command: Callable[[], NoReturn]) -> NoReturn:
    """Run a command and exit as the interpreter would, without tearing down all modules."""
    code = 1
    try:
        command()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _ended(child: int) -> int:
    """Return the exit status of a command; kill it if it exceeds the time limit."""
    give_up_at = time.monotonic() + PATIENCE
    while time.monotonic() < give_up_at:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


if __name__ == "__main__":
    main()
