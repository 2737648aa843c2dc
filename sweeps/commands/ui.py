"""ui: MLflow's pages on a home."""

import os
import sys
from pathlib import Path

import click

from sweeps.commands.request import RefusedError, home_option
from sweeps.home import Home


@click.command()
@home_option
@click.option("--port", type=click.IntRange(1, 65535), default=5000, show_default=True)
def ui(home: Path, port: int) -> int:
    """Open MLflow's pages on this home, for this machine only."""  # noqa: DOC501
    place = Home(folder=home)
    if not (home / "mlflow.db").is_file():
        raise RefusedError(f"{home / 'mlflow.db'}: not found; run a study first")
    click.echo(f"http://127.0.0.1:{port}  (Ctrl-C ends it)")
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    server = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--backend-store-uri",
        place.tracking_uri,
        "--artifacts-destination",
        str(place.artifact_location),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
    ]
    os.execv(sys.executable, server)  # noqa: S606  the server takes this process's place
