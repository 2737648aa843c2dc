"""Warm: commands begun by a process that has imported what they need, for soaks of a thousand.

A command is a process of its own here too, with the memory of one that has just loaded Ray, MLflow
and torch: what is left out is loading them again, most of the time of most commands.
"""

import faulthandler
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn

from tests.conftest import CommandLine

_POLL = 0.02
_ASKED = signal.SIGUSR1
"""Asks a command that hangs where it stands."""
_TELLS_WITHIN = 2.0
_NEEDED = (
    "sweeps.cli",
    "sweeps.running.launch",
    "sweeps.searching.proposals",
    "mlflow",
    "sweeps.tracking.projection",
    "reports.build",
)


class Warm:
    """What begins commands; `started` ends it."""

    def __init__(self, process: "subprocess.Popen[str]", said: Path) -> None:
        self._process = process
        self._said = said

    @classmethod
    @contextmanager
    def started(cls, prefix: Sequence[str], folder: Path) -> Iterator["Warm"]:
        """Import everything once.

        Args:
            prefix: A command that runs the command given after it.
            folder: Where to put what commands print.
        """
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.soak.warm"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            yield cls(process, folder / "said.txt")
        finally:
            process.communicate()

    def __call__(
        self, mixsweep: CommandLine, *arguments: str, patience: float
    ) -> tuple[int | None, str]:
        """Run a command on a home; return its exit code, None if it hung, and what it printed."""
        begun = {
            "arguments": arguments,
            "environment": mixsweep.environment(),
            "said": str(self._said),
            "patience": patience,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(begun), file=self._process.stdin, flush=True)
        code: int | None = json.loads(self._process.stdout.readline())
        return code, self._said.read_text(errors="replace")


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


def _become(arguments: Sequence[str], environment: Mapping[str, str], said: str) -> NoReturn:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(number, target)
    faulthandler.register(_ASKED, chain=False)
    sys.argv = ["mixsweep", *arguments]
    from sweeps.cli import main

    main()


def _code(pid: int, patience: float) -> int | None:
    """Return how a child ended, a signal below 0; None if it had to be killed with its own.

    One that hangs prints where each of its threads stands first.
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
