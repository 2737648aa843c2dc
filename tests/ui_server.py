"""UiServer: runs `mixsweep ui` until it answers, for tests that do not look at its pages."""

import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.cluster.head import free_ports

_PATIENCE = 240.0


def said_by_ui(
    command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> tuple[int, str]:
    """Start the server, end it once it answers, and return its exit code and output.

    Args:
        command: Command line of `mixsweep`.
        environment: Environment of the command.
        folder: Working directory.

    Returns:
        Exit code, 0 if the server answered; and the output.
    """
    (port,) = free_ports(1)
    server = subprocess.Popen(
        [*command, "ui", "--port", str(port)],
        env=environment, cwd=folder, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    give_up_at = time.monotonic() + _PATIENCE
    # No proxy of the environment: it is the command that has them.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while server.poll() is None and time.monotonic() < give_up_at:
        with suppress(OSError), opener.open(f"http://127.0.0.1:{port}/", timeout=9):
            break
        time.sleep(0.2)
    code, has_answered = server.poll(), time.monotonic() < give_up_at
    server.terminate()
    said, _ = server.communicate(timeout=60)
    if code is None:
        return (0 if has_answered else 1), said
    return code, said
