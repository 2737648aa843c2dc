"""TrackingServer: a real MLflow server that a test starts, kills and starts again."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.launches import wait_for


@dataclass
class TrackingServer:
    """An MLflow server on this machine, whose database outlives it."""

    folder: Path
    port: int
    backend: str | None = None
    """URL of its database; None means an SQLite file in the folder."""
    artifacts: str | None = None
    """Folder or URL of its artifacts; None means the folder."""
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        return self.folder / "server.db"

    def start(self) -> None:
        """Start it and wait until it answers."""
        process = self._process = subprocess.Popen(
            [
                sys.executable, "-m", "mlflow", "server",
                "--backend-store-uri", self.backend or f"sqlite:///{self.database}",
                "--artifacts-destination", self.artifacts or str(self.folder / "artifacts"),
                "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1",
            ],
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

        def answers() -> bool:
            assert process.poll() is None, "the tracking server ended by itself"
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        wait_for(answers)

    def kill(self) -> None:
        """Kill the server and its workers, which share its process group."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def has_points(self) -> bool:
        """Return whether any metric of any run has arrived."""
        with sqlite3.connect(self.database) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'metrics'")
            found = tables.fetchone() and connection.execute("SELECT 1 FROM metrics").fetchone()
        connection.close()
        return bool(found)
