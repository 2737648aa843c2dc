"""Warm: commands started by a process that has imported everything, for thousands of commands.

Each command is still its own process, forked from one that has imported Ray, MLflow and torch. This
saves importing them and tearing them down, which is most of the time of most commands.
"""

import atexit
import faulthandler
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from tests.conftest import CommandLine

_POLL = 0.02
_ASKED = signal.SIGUSR1
"""Signal that makes a hanging command print its stack frames."""
_TELLS_WITHIN = 2.0
_NEEDED = (
    "sweeps.cli",
    "sweeps.running.launch",
    "sweeps.running.tuning",
    "sweeps.searching.proposals",
    "mlflow",
    "torchvision",
    "sweeps.tracking.projection",
    "reports.pages.build",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """Exit code and output of a command."""

    code: int | None
    """Exit code; None if the command hung."""
    out: str
    err: str


class Warm:
    """Process that starts commands; `started` ends it."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._said = folder / "stdout.txt", folder / "stderr.txt"

    @classmethod
    @contextmanager
    def started(cls, prefix: Sequence[str], folder: Path) -> Iterator["Warm"]:
        """Import everything once.

        Args:
            prefix: A command that runs the command which follows it.
            folder: Folder for the output of commands.
        """
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.soak.warm"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            yield cls(process, folder)
        finally:
            process.communicate()

    def __call__(self, mixsweep: CommandLine, *arguments: str, patience: float) -> "Ended":
        """Run a command on a home.

        If it would become another program, such as a server, it exits with 0 instead.

        Args:
            mixsweep: Command line on the home.
            arguments: Arguments of the command.
            patience: Seconds after which it counts as hanging.
        """
        begun = {
            "arguments": arguments,
            "environment": mixsweep.environment(),
            "said": [str(path) for path in self._said],
            "patience": patience,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(begun), file=self._process.stdin, flush=True)
        code: int | None = json.loads(self._process.stdout.readline())
        out, err = (path.read_text(errors="replace") for path in self._said)
        return Ended(code=code, out=out, err=err)


def _serve(requests: IO[str]) -> None:
    before = dict(os.environ)
    for module in _NEEDED:
        importlib.import_module(module)
    # What importing sets is part of what a command is: that its cluster is closed to others.
    needed = {name: value for name, value in os.environ.items() if before.get(name) != value}
    for line in requests:
        begun = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(begun["arguments"], needed | begun["environment"], begun["said"])
        print(json.dumps(_code(pid, begun["patience"])), flush=True)  # noqa: T201


def _become(
    arguments: Sequence[str], environment: Mapping[str, str], said: Sequence[str]
) -> NoReturn:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    out, err = (os.open(path, new, 0o600) for path in said)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, target in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(number, target)
    sys.addaudithook(_stay)
    faulthandler.register(_ASKED, chain=False)
    sys.argv = ["mixsweep", *arguments]
    from sweeps.cli import main

    code = 1
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        traceback.print_exc()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _stay(event: str, arguments: Sequence[object]) -> None:
    """End a process that is about to become another program."""
    if event == "os.exec":
        sys.stdout.flush()
        os._exit(0)


def _code(pid: int, patience: float) -> int | None:
    """Return the exit code of a child (a signal is negative); None if it had to be killed.

    A hanging child first prints the stack of each of its threads.
    """
    give_up_at = time.monotonic() + patience
    while time.monotonic() < give_up_at:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_POLL)
    os.kill(pid, _ASKED)
    time.sleep(_TELLS_WITHIN)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


if __name__ == "__main__":
    _serve(sys.stdin)
