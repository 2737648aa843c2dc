"""Real servers for tests, on the loopback, ended by their process ids."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


def free_ports(count: int) -> list[int]:
    """Return different ports on which nothing listens."""
    with contextlib.ExitStack() as stack:
        return [
            int(stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1])
            for _ in range(count)
        ]


def free_port() -> int:
    """Return a port on which nothing listens."""
    return free_ports(1)[0]


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Run PostgreSQL on a new data folder; yield the URL of an empty database."""
    binaries = [str(path) for path in Path("/usr/lib/postgresql").glob("*/bin")]
    where = os.pathsep.join([*sorted(binaries, reverse=True), os.environ["PATH"]])
    initdb, server = (shutil.which(name, path=where) for name in ("initdb", "postgres"))
    if initdb is None or server is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql): NOT TESTED on it")
    as_user: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    data, port = folder / "postgres", free_port()
    data.mkdir(mode=0o700)
    if as_user:
        for parent in (folder, *folder.parents):
            if parent.stat().st_uid == os.geteuid() and parent.stat().st_mode & 0o001 == 0:
                parent.chmod(parent.stat().st_mode | 0o011)
        os.chown(data, 65534, 65534)
    options = ["--auth=trust", "--username=mixsweep", "--no-sync", "--encoding=UTF8"]
    subprocess.run(
        [*as_user, initdb, "-D", str(data), *options], check=True, capture_output=True, cwd="/"
    )
    command = [*as_user, server, "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", ""]
    url = f"postgresql+psycopg://mixsweep@127.0.0.1:{port}/postgres"
    with running(command, lambda: listens(port) and _answers(port)):
        yield url


@contextlib.contextmanager
def running(
    command: list[str], is_ready: Callable[[], bool], **environment: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server in its own process group until the end of the `with`."""
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, start_new_session=True, cwd="/",
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        give_up_at = time.monotonic() + 90
        while not is_ready():
            assert process.poll() is None, f"ended by itself: {command}"
            assert time.monotonic() < give_up_at, f"does not answer: {command}"
            time.sleep(0.05)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def listens(port: int) -> bool:
    """Return whether a process listens on a port of the loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _answers(port: int) -> bool:
    import psycopg

    try:
        psycopg.connect(f"postgresql://mixsweep@127.0.0.1:{port}/postgres").close()
    except psycopg.OperationalError:
        return False
    return True
