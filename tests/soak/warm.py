"""Warm: commands in forks of a process that has imported everything, for hundreds of commands.

Each command is a process of its own, with its own environment, working directory and streams. It
saves the seconds in which an interpreter starts and imports Ray, MLflow and torch.
"""

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import CommandLine

ASKED = signal.SIGUSR1
"""Signal that makes a hanging command print its stack frames."""
_TELLS_WITHIN = 2.0
NEEDED = (
    "mixsweep.cli.main",
    "sweeps.running.launch",
    "sweeps.running.tuning",
    "sweeps.running.attempt",
    "sweeps.searching.proposals",
    "mlflow",
    "torchvision",
    "sweeps.tracking.study_log",
    "reports.pages.build",
)
"""Modules that commands use; the server imports them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """Exit code and output of a command."""

    code: int | None
    """Exit code; None if the command hung."""
    out: str
    err: str


@dataclass(kw_only=True, slots=True)
class Forked:
    """A started command, with the methods of `subprocess.Popen` that tests use."""

    args: Sequence[str]
    pid: int
    connection: socket.socket
    """Connection on which the server of the fork tells its exit code."""
    returncode: int | None = None
    _told: bytes = field(default=b"", init=False)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code; a signal is negative.

        Raises:
            subprocess.TimeoutExpired: If the command goes on after some seconds.
        """
        if self.returncode is None:
            self.connection.settimeout(timeout)
            try:
                while not self._told.endswith(b"\n"):
                    part = self.connection.recv(64)
                    assert part, "the server of warm commands is gone"
                    self._told += part
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0.0) from None
            self.connection.close()
            self.returncode = int(self._told)
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code; None while the command runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def send_signal(self, number: int) -> None:
        """Send a signal to the command."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the command."""
        self.send_signal(signal.SIGKILL)

    def wait_or_kill(self, patience: float) -> int | None:
        """Return the exit code; None if the command hung, after it has printed its frames."""
        try:
            return self.wait(patience)
        except subprocess.TimeoutExpired:
            self.send_signal(ASKED)
            time.sleep(_TELLS_WITHIN)
            os.killpg(self.pid, signal.SIGKILL)
            self.wait()
            return None


_ROOT = Path(__file__).parents[2]
_SERVE = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from tests.soak.warm_server import main; main()"
)
"""Program of the server. PYTHONSAFEPATH, which an environment may set, keeps `-m` from finding the
tests in the working directory.
"""


class Warm:
    """A process that starts commands; `started` ends it."""

    def __init__(self, place: Path) -> None:
        self._place = place

    @classmethod
    @contextmanager
    def started(
        cls,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        *,
        first: str = "",
    ) -> Iterator["Warm"]:
        """Import everything once.

        Args:
            prefix: A command that runs the command which follows it.
            environment: Environment in which the modules are imported; None is that of this
                process.
            first: MODULE:FUNCTION to call after the imports; empty for none.
        """
        with tempfile.TemporaryDirectory(prefix="warm-") as place:
            Path(place).chmod(0o777)  # a prefix may change the user
            process = subprocess.Popen(
                [*prefix, sys.executable, "-c", _SERVE, str(_ROOT), place, first],
                env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                cwd=place,  # an environment with HOME=relative leaves files there
            )  # fmt: skip
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "ready\n", "the server does not start"
                yield cls(Path(place))
            finally:
                process.communicate()

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        streams: Mapping[int, int],
        folder: str | Path | None = None,
        then: str = "",
    ) -> Forked:
        """Start a command.

        If it would become another program, such as a server, it exits with 0 instead.

        Args:
            arguments: Arguments of `mixsweep`.
            environment: Environment of the command.
            streams: Open files by number of the stream; a missing output stream is closed.
            folder: Working directory; None is that of this process.
            then: MODULE:FUNCTION to call before the command; empty for none.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(str(self._place / "socket"))
        request: dict[str, Any] = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder or Path.cwd()),
            "streams": list(streams),
            "then": then,
        }
        # The files travel with the first byte; the rest follows when the server has taken it.
        socket.send_fds(connection, [b" "], list(streams.values()))
        connection.sendall(json.dumps(request).encode() + b"\n")
        pid = connection.makefile("rb", buffering=0).readline()
        return Forked(args=list(arguments), pid=int(pid), connection=connection)

    def __call__(self, mixsweep: CommandLine, *arguments: str, patience: float) -> Ended:
        """Run a command on a home to its end.

        Args:
            mixsweep: Command line on the home.
            arguments: Arguments of the command.
            patience: Seconds after which it counts as hanging.
        """
        return self.run(arguments, mixsweep.environment(), patience=patience)

    def run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        patience: float,
        folder: str | Path | None = None,
    ) -> Ended:
        """Run a command in an environment to its end."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            streams = {1: out.fileno(), 2: err.fileno()}
            forked = self.start(arguments, environment, streams=streams, folder=folder)
            code = forked.wait_or_kill(patience)
            said = []
            for file in (out, err):
                file.seek(0)
                said.append(file.read().decode(errors="replace"))
        return Ended(code=code, out=said[0], err=said[1])


def called(name: str) -> None:
    """Call a function by MODULE:FUNCTION."""
    module, _, function = name.partition(":")
    getattr(importlib.import_module(module), function)()


def rehearse() -> None:
    """Let MLflow and SQLAlchemy set up what they set up once in a process."""
    from sweeps.tracking.connection import connect

    with tempfile.TemporaryDirectory() as folder:
        connect(f"sqlite:///{folder}/mlflow.db").search_experiments()
    others = [t for t in threading.enumerate() if t is not threading.main_thread()]
    assert not others, f"threads would be missing in forks: {others}"
