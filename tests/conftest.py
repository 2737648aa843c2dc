"""Fixtures for the command line as a user runs it: its own process, in its own home."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import settings

from tests.command_server import CommandServer
from tests.object_stores import NAMES, forget_clients, object_stores
from tests.plugin_files import plugin as plugin
from tests.plugin_files import unregistered as unregistered
from tests.servers import free_port

pytest_plugins = ["tests.cpu_seconds"]

# How long an example takes depends on the machine. `make long` draws ten times as many.
settings.register_profile("mixsweep", deadline=None, max_examples=30)
settings.register_profile("long", deadline=None, max_examples=300)
settings.load_profile("mixsweep")


def pytest_configure() -> None:
    """Let tests interrupt their processes, also if pytest is a background job or under `nohup`.

    Processes that this one starts would ignore SIGINT and SIGHUP too.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection() -> None:
    """Do not look for garbage while modules are imported: that took a third of their time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave the imported modules out of every later search for garbage."""
    gc.enable()
    gc.collect()
    gc.freeze()


_OF_INTERPRETERS = {"PYTHONPATH", "TMPDIR", "LC_ALL"}
"""Variables that are read only once, by the interpreter or by a module that is already imported."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """The command `mixsweep` on one home, without cluster variables of the caller's environment."""

    home: Path
    data: Path
    extra: Mapping[str, str]
    prefix: tuple[str, ...] = ()
    """A command that runs the command which follows it, such as `nice`."""
    server: CommandServer | None = None
    """Server that runs commands in forks; None: each command starts an interpreter."""

    def environment(self) -> dict[str, str]:
        """Return the environment in which a command runs."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_", "MIX"))}
        own = {"MIXSWEEP_HOME": str(self.home), "MIXSWEEP_DATA": str(self.data)}
        # Ray would give workers, which tests wait for, what CPU everything else leaves.
        speed = {"OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}
        return {**kept, **own, **speed, **self.extra}

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command in its own process group, without waiting for it."""
        return subprocess.Popen(
            [*self.prefix, sys.executable, "-m", "mixsweep", *arguments],
            env=self.environment(), text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def __call__(self, *arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end; the test fails unless the exit code is `code`."""
        if self.server is not None and not _OF_INTERPRETERS.intersection(self.extra):
            returncode, out, err = self.server.run(arguments, self.environment())
        else:
            process = self.start(*arguments)
            out, err = process.communicate(timeout=240)
            returncode = process.returncode
        message = f"{arguments} exited with {returncode}, not {code}\n{out}\n{err}"
        assert returncode == code, message
        return subprocess.CompletedProcess(arguments, returncode, out, err)

    def each(self, commands: Iterable[Sequence[str]]) -> "list[subprocess.CompletedProcess[str]]":
        """Run commands one after another in forks, and accept any exit code."""
        return [
            subprocess.CompletedProcess(command, *self.server.run(command, self.environment()))
            for command in commands
        ]

    def json(self, *arguments: str) -> dict[str, Any]:
        """Run a command with `--json` and return the parsed output."""
        said: dict[str, Any] = json.loads(self(*arguments, "--json").stdout)
        return said

    @contextmanager
    def serving(self, *arguments: str) -> "Iterator[tuple[subprocess.Popen[str], int]]":
        """Run `mixsweep ui` during a `with`; yield its process and port once the pages answer."""
        port = free_port()
        server = self.start("ui", *arguments, "--port", str(port))
        give_up_at = time.monotonic() + 120
        try:
            while True:
                assert server.poll() is None, server.communicate()
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=20).close()
                    break
                except OSError:
                    assert time.monotonic() < give_up_at, "the server does not answer"
                    time.sleep(0.5)
            yield server, port
        finally:
            server.terminate()
            server.communicate(timeout=30)

    def report(self, study: str, file: str) -> bytes:
        """Return the content of a file of a study's report."""
        return (self.home / "reports" / study / file).read_bytes()


CommandLines = Callable[..., CommandLine]
"""Function that makes a command line, on a new home unless one is given."""


@pytest.fixture(scope="session")
def command_server() -> Iterator[CommandServer | None]:
    """Yield a command server, whose process starts with the first command."""
    with CommandServer() as server:
        yield server


@pytest.fixture(scope="session")
def command_line(
    tmp_path_factory: pytest.TempPathFactory, command_server: CommandServer | None
) -> CommandLines:
    """Return a function that makes command lines with a home each and a common data folder."""
    data = tmp_path_factory.mktemp("data")

    def make(home: Path | None = None, **extra: str) -> CommandLine:
        home = home or tmp_path_factory.mktemp("home") / "runs"
        return CommandLine(home=home, data=data, extra=extra, server=command_server)

    return make


@pytest.fixture(scope="session")
def object_store() -> Iterator[Callable[[str], Mapping[str, str]]]:
    """Return a function from the name of an object store to the environment of its clients."""
    with object_stores() as start:
        yield start


@pytest.fixture
def client_of(
    object_store: Callable[[str], Mapping[str, str]], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Mapping[str, str]]:
    """Return a function that makes this process a client of an object store, by its name."""

    def become(name: str) -> Mapping[str, str]:
        clients = object_store(name)
        for variable, value in clients.items():
            monkeypatch.setenv(variable, value)
        forget_clients()
        return clients

    return become


@pytest.fixture(params=NAMES)
def s3(
    request: pytest.FixtureRequest, client_of: Callable[[str], Mapping[str, str]]
) -> Mapping[str, str]:
    """Make this process a client of each S3 server in turn; return the environment that does so."""
    return client_of(request.param)


@pytest.fixture(autouse=True)
def handlers_of_before() -> Iterator[None]:
    """Restore the signal handlers; a command that was interrupted would end at the next signal."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def process_kept() -> Iterator[None]:
    """Fail a test that calls `os._exit` in the process of pytest; its forks may still end so."""
    pid, leave = os.getpid(), os._exit

    def refuse(code: int) -> NoReturn:
        if os.getpid() != pid:
            leave(code)
        pytest.fail(f"os._exit({code}) would end pytest; run this command with `command_line`")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "_exit", refuse)
        yield
