"""sync and ui: write the results of a study to MLflow again, and start MLflow's web pages."""

import errno
import math
import os
import shlex
import socket
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import click

from mixsweep.cli.options import StudyCommand, home_option, on_study
from mixsweep.launching.tracked import (
    bringing_up_to_date,
    log_network,
    open_tracker,
    settled_if_cut,
)
from mixsweep.request import DONE, RefusedError, Request
from sweeps.leasing.lease import Lease
from sweeps.machine.command_line import program
from sweeps.machine.databases import require_tracking
from sweeps.machine.home import Home
from sweeps.machine.watchdog import cleaned_by_force
from sweeps.reading.study_file import load_study
from sweeps.state.ledger import launches

_MOST_LEFT = 3
"""Number of other studies that `sync` names."""


@click.command(cls=StudyCommand)
@on_study(databases=True)
def sync(request: Request) -> int:
    """Delete the runs of a study in MLflow, and write its stored results there again."""
    request.require_stored()
    request.require_databases()
    with (
        Lease.acquire(request.store, request.study.name, request.command) as lease,
        cleaned_by_force(lease.release),
    ):
        results = request.results()
        tracker = open_tracker(request, lease)
        with settled_if_cut(tracker, request.store):
            tracker.start(results, anew=True)
            log_network(tracker, request.grown, request.store)
            with bringing_up_to_date(tracker):
                tracker.close(results, timeout=math.inf)
    if tracker.trouble is not None:
        raise RefusedError(
            f"tracking is incomplete: {tracker.trouble}; when the cause is fixed, run the same "
            "command again"
        )
    click.echo(
        f"{request.study.name}: {sum(r.outcome == 'complete' for r in results)} finished "
        f"runs of {len(results)} are in MLflow"
    )
    _say_left(request)
    return DONE


def _say_left(request: Request) -> None:
    """Print the other studies and settings of the store, which this command has not copied."""
    study = request.study
    others = [
        launch
        for launch in launches(request.store)
        if (launch.study, launch.settings) != (study.name, study.settings)
    ]
    for launch in others[:_MOST_LEFT]:
        click.echo(f"left      {launch.study}: {launch.command}", err=True)
    if (more := len(others) - _MOST_LEFT) > 0:
        click.echo(f"left      {more} more; `mixsweep status` lists them", err=True)
    if others:
        click.echo("these are copied by `mixsweep sync` with their STUDY and settings", err=True)


_SERVERS = (
    "MLFLOW_", "UVICORN_", "GUNICORN_", "FLASK_", "WEB_CONCURRENCY", "FORWARDED_ALLOW_IPS",
)  # fmt: skip
"""Prefixes of environment variables from which MLflow's server and its web servers read options."""
_KEPT = {"MLFLOW_DISABLE_TELEMETRY", "MLFLOW_LOGGING_LEVEL"}


@click.command()
@click.argument("study", required=False)
@home_option
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=5000,
    show_default=True,
    help="Port of this machine on which the pages are served.",
)
def ui(study: str | None, home: Path, port: int) -> int:
    """Start MLflow's web pages for this home; they can be reached from this machine only.

    To open them on another machine, forward the port. Prints links to the arms and the learning
    curves of each study, or of STUDY alone. Exit code 2 if another program uses the port, because
    the links would lead to that program.
    """
    from sweeps.tracking.connection import experiments
    from sweeps.tracking.links import study_links

    place = Home(folder=home)
    database = home / "mlflow.db"
    require_tracking(
        place.tracking_uri, shlex.join([program(), "sync", study or "STUDY", "--home", str(home)])
    )
    if not database.is_file():
        raise RefusedError(f"{database}: this MLflow database does not exist; run a study first")
    _require_free(port)
    links = study_links(experiments(place.tracking_uri), f"http://127.0.0.1:{port}")
    if study is not None:
        name = study if study in links else load_study(study, (), place.store, reads_only=True).name
        if name not in links:
            raise RefusedError(
                f"study {name} is not in {database}; use `{program()} run` or `sync` first"
            )
        links = {name: links[name]}
    _require_free(port)  # checked again, because opening MLflow takes seconds
    for name, of_study in links.items():
        click.echo(
            f"{name}\n  arms             {of_study.arms}\n  learning curves  {of_study.seeds}"
        )
    click.echo(f"MLflow starts at http://127.0.0.1:{port}  (Ctrl-C ends it)")
    server = [
        sys.executable, "-P", "-m", "mlflow", "server",
        "--backend-store-uri", place.tracking_uri,
        "--artifacts-destination", str(place.artifact_location),
        "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        # Any port, because a port forwarded by ssh has another number at its other end. MLflow's
        # default list allows every address of a private network, and names with such a prefix.
        "--allowed-hosts", "127.0.0.1,localhost,127.0.0.1:*,localhost:*",
        # uvicorn searches the working directory for modules first, unless another folder is named.
        "--uvicorn-opts", shlex.join(["--app-dir", sysconfig.get_path("purelib")]),
    ]  # fmt: skip
    # The server replaces this process.
    os.execve(sys.executable, server, closed_environment(os.environ))  # noqa: S606


def closed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables without options of MLflow and its web servers.

    Such options listen on other addresses, accept requests from any site, or open another database.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if not name.lstrip("_").upper().startswith(_SERVERS) or name in _KEPT
    }
    # A file in the working directory with the name of one of their modules would replace it.
    fixed = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "PYTHONSAFEPATH": "1"}
    return {"MLFLOW_DISABLE_TELEMETRY": "true"} | kept | fixed


def _require_free(port: int) -> None:
    """Check that this process could listen on a port of 127.0.0.1."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except OSError as error:
            is_taken = error.errno == errno.EADDRINUSE
            cannot = f"this port cannot be used ({error.strerror})"
            reason = "another program uses this port" if is_taken else cannot
            another = port + 1 if 1024 <= port < 65535 else 5001
            raise RefusedError(
                f"--port {port}: {reason}; choose another, for example --port {another}"
            ) from error
