"""Head: a Ray cluster of this machine alone, which requires a token and listens on the loopback."""

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from tests.faults.launches import wait_for
from tests.servers import free_ports

MEMORY = 100 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """A running Ray head node."""

    address: str
    """URL of its dashboard."""
    token: Path
    """File with the token of the cluster."""

    def environment(self) -> dict[str, str]:
        """Return the environment that a client of this head needs."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token)}


@contextmanager
def started_head() -> Iterator[Head]:
    """Start a head node; at the end of the `with`, all its processes and files are removed."""
    with tempfile.TemporaryDirectory(prefix="h-", ignore_cleanup_errors=True) as folder:
        token = Path(folder) / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32))
        ports = free_ports(5)
        address = f"http://127.0.0.1:{ports[1]}"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MIX"))}
        environment |= {
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "OMP_NUM_THREADS": "1",
        }
        names = (
            "--port", "--dashboard-port", "--ray-client-server-port",
            "--dashboard-agent-listen-port", "--dashboard-agent-grpc-port",
        )  # fmt: skip
        given = [f"{name}={port}" for name, port in zip(names, ports, strict=True)]
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block",
            f"--temp-dir={folder}", "--num-cpus=2", "--node-ip-address=127.0.0.1",
            f"--object-store-memory={MEMORY}", "--disable-usage-stats", *given,
        ]  # fmt: skip
        log = Path(folder) / "start.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                command, env=environment, cwd=folder, stdout=out, stderr=out, start_new_session=True
            )
        try:
            _wait_for(address, process, log)
            yield Head(address=address, token=token)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        # Another program may have taken the port meanwhile, and would answer too.
        if "Ray runtime started" not in log.read_text():
            return False
        try:
            requests.get(f"{address}/api/version", timeout=5)
        except requests.RequestException:
            return False
        return True

    wait_for(answers)
