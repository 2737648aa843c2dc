"""TrackingServer: a real MLflow server that a test starts, kills and starts again."""

import sqlite3
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers import listens, running


@dataclass
class TrackingServer:
    """An MLflow server on this machine, whose database outlives it."""

    folder: Path
    port: int
    backend: str | None = None
    """URL of its database; None means an SQLite file in the folder."""
    artifacts: str | None = None
    """Folder or URL of its artifacts; None means the folder."""
    options: tuple[str, ...] = ()
    _running: ExitStack = field(default_factory=ExitStack, init=False)

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        return self.folder / "server.db"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [
            sys.executable, "-m", "mlflow", "server",
            "--backend-store-uri", self.backend or f"sqlite:///{self.database}",
            "--artifacts-destination", self.artifacts or str(self.folder / "artifacts"),
            "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1",
            *self.options,
        ]  # fmt: skip
        alone = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        self._running.enter_context(running(command, lambda: listens(self.port), **alone))

    def kill(self) -> None:
        """Kill the server and its workers, which share its process group."""
        self._running.close()

    def has_points(self) -> bool:
        """Return whether any metric of any run has arrived."""
        with sqlite3.connect(self.database) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'metrics'")
            found = tables.fetchone() and connection.execute("SELECT 1 FROM metrics").fetchone()
        connection.close()
        return bool(found)
