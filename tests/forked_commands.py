"""Commands in forks of one interpreter that has imported what they need: imports cost most of one.

Standard input has a JSON line per command: its arguments, environment and working directory. The
answer is a JSON line: exit code, standard output and standard error.
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
"""Seconds until a command is killed."""
_IMPORTED = (
    "mixup_core.images.training", "optuna", "reports.pages.build", "sklearn.datasets",
    "sweeps.searching.search_history", "sweeps.tracking.tracker", "sweeps.tracking.projection",
)  # fmt: skip
"""Modules that commands import besides `sweeps.cli`. Ray is none of them: it must not be forked."""


def main() -> None:
    """Run each command when its line comes."""
    before = dict(os.environ)
    os.environ.update(MPLBACKEND="agg", MATPLOTLIBRC=os.devnull)
    from sweeps import cli
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
    """Let this process look as if the command had started it."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(set_by_imports | request["environment"])
    tempfile.tempdir = None
    sys.argv = ["mixsweep", *request["arguments"]]
    sys.orig_argv[:] = [sys.executable, "-m", "sweeps.cli", *request["arguments"]]


def _leave(command: Callable[[], NoReturn]) -> NoReturn:
    """Run a command and end as the interpreter would, but for taking all modules apart."""
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
    """Return the status of a command that has ended, or that is killed after the patience."""
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
