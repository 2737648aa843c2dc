"""The command `mixsweep`. Ray, MLflow and torch are loaded only by the commands that use them."""

import errno
import os
import shlex
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

import click

from mixup_core.catalog import DataError
from mixup_core.fetching import data_root, is_present
from mixup_core.files import StoreError, StoreFullError
from sweeps.data_commands import data
from sweeps.holders import StudyBusyError, StudyLostError
from sweeps.home import Home
from sweeps.inspection import doctor, list_studies, plan, schema, status
from sweeps.lease import Lease
from sweeps.placement import Placement, PlacementError
from sweeps.request import (
    BAD_INPUT,
    BUSY,
    DONE,
    INTERRUPTED,
    SOME_FAILED,
    RefusedError,
    Request,
    command_line,
    home_option,
    on_study,
    placement_options,
)
from sweeps.results import RunResult, read_results
from sweeps.search import SearchError
from sweeps.stages import Plan, plan_study
from sweeps.store_commands import store_commands
from sweeps.study import Study
from sweeps.study_file import StudyError
from sweeps.submission import submit

if TYPE_CHECKING:
    from reports.build import Report
    from sweeps.sources import RunSource
    from sweeps.tracker import Tracker


class SearchLostError(Exception):
    """A search whose storage stopped answering while it ran."""


_CLUSTER_PATIENCE = 10.0
"""Seconds to wait for a cluster's port."""


def main() -> NoReturn:
    """Run the command line and exit with a documented code."""
    # What preempts a machine sends SIGTERM: the same end as Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = commands.main(standalone_mode=False)
    except click.exceptions.Exit as leave:
        code = leave.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (StudyBusyError, StudyLostError) as error:
        code = _say(error, BUSY)
    except (StoreFullError, SearchLostError) as error:
        code = _say(error, SOME_FAILED)
    except (StudyError, DataError, StoreError, PlacementError, RefusedError, SearchError) as error:
        code = _say(error, BAD_INPUT)
    except (KeyboardInterrupt, click.Abort):
        code = _say("interrupted; the same command goes on where it stopped", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    except OSError as error:
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        place = f"{error.filename}: " if error.filename else ""
        code = _say(
            f"{place}{'disk full' if is_full else error.strerror or error}",
            SOME_FAILED if is_full else BAD_INPUT,
        )
    sys.exit(code or DONE)


def _say(message: object, code: int) -> int:
    click.echo(str(message), err=True)
    return code


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mixsweep")
def commands() -> None:
    """Studies of mixup training, from a study file to a table.

    STUDY is a bundled study or the path of a study file. Exit codes: 0 all done, 1 some runs
    failed or are missing, 2 bad input, 3 another driver holds the study, 130 interrupted.
    """


@commands.command()
@on_study
@placement_options
@click.option("--address", help="Ray cluster to train on; default: this machine.")
def run(  # noqa: PLR0913  its options
    request: Request,
    slots: int | None,
    gpus_per_run: float | None,
    cpus_per_run: int,
    device: Literal["cpu"] | None,
    address: str | None,
    keep_final_states: bool,
) -> int:
    """Train what is missing of a study, then write its report."""  # noqa: DOC501
    placement = Placement(
        slots=slots, gpus_per_run=gpus_per_run, cpus_per_run=cpus_per_run, device=device
    )
    if address is not None:
        _require_cluster(address)
        os.environ["RAY_ADDRESS"] = address
    from sweeps.launch import train

    _require_data(request.study)
    store, study = request.store, request.study
    with Lease.acquire(store, study.name, command_line()) as lease:
        plan = plan_study(request.grown, store)
        click.echo(_announcement(request, plan), err=True)
        source = _source(request, plan)
        tracker = _tracker(request, lease)
        tracker.start(request.results())
        try:
            results = train(
                source, store, tracker, lease, placement, keep_final_states=keep_final_states
            )
            if source.trouble is not None:
                raise SearchLostError(
                    f"{source.trouble}\nwhat was trained is stored; next  {request.spell('run')}"
                )
            request = request.refreshed()
            report = _report(request, results, None)
            tracker.grow(source.study)
            tracker.log_report(report.folder, report.markdown)
        finally:
            tracker.grow(source.study)
            stored: Sequence[RunResult] = ()
            with suppress(StoreError):  # the store may be what ended the launch
                stored = read_results(source.study.runs(), store)
            arrived = tracker.close(stored)
    click.echo(report.markdown)
    if not arrived:
        click.echo(
            f"tracking is incomplete; when the server is back: {request.spell('sync')}", err=True
        )
    return _conclude(request, results, report)


@commands.command()
@on_study
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to; default: reports/STUDY in the home.",
)
def report(request: Request, out: Path | None) -> int:
    """Write tables, figures and provenance of what is stored."""
    results = request.results()
    written = _report(request, results, out)
    click.echo(written.markdown)
    return _conclude(request, results, written)


@commands.command()
@on_study
def sync(request: Request) -> int:
    """Bring MLflow to exactly what the store holds, from an empty database too."""  # noqa: DOC501
    with Lease.acquire(request.store, request.study.name, command_line()) as lease:
        results = request.results()
        tracker = _tracker(request, lease)
        tracker.start(results)
        arrived = tracker.close(results)
    if not arrived:
        raise RefusedError("the tracking server did not answer; try again when it is back")
    click.echo(
        f"{request.study.name}: {sum(r.outcome == 'complete' for r in results)} finished "
        f"runs of {len(results)} are in MLflow"
    )
    return DONE


@commands.command()
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


def _require_data(study: Study) -> None:
    root = data_root()
    for name in {config.data.name for config in study.arms.values()} - {"image-folder"}:
        if not is_present(name, root):
            raise RefusedError(
                f"{name}: not found in {root}; get it with mixsweep data fetch {name}"
            )


def _require_cluster(address: str) -> None:
    """Check that somebody listens at an address; Ray itself would wait for minutes.

    Raises:
        RefusedError: If the address is none or nobody answers.
    """
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        raise RefusedError(f"`--address is HOST:PORT` must hold, got ({address=})")
    try:
        socket.create_connection((host, int(port)), timeout=_CLUSTER_PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise RefusedError(f"{address}: no Ray cluster answers ({error})") from error


def _tracker(request: Request, lease: Lease) -> "Tracker":
    from reports.provenance import origin_tags
    from reports.statistics import summarise_runs
    from sweeps.projection import Projection
    from sweeps.tracker import Tracker

    return Tracker(
        Projection(
            request.grown,
            request.home.tracking_uri,
            summarise=summarise_runs,
            artifact_location=request.home.artifact_location,
            tags=origin_tags(),
        ),
        may_write=lease.is_held,
    )


def _report(request: Request, results: Sequence[RunResult], out: Path | None) -> "Report":
    from reports.build import build_report

    return build_report(
        request.grown,
        results,
        out or request.home.report_of(request.study.name),
        data_checksums=request.data_checksums(),
        command=command_line(),
        history=request.history,
    )


def _source(request: Request, plan: Plan) -> "RunSource":
    from sweeps.proposals import Proposals
    from sweeps.sources import FixedSource, SearchSource

    if request.study.search is None:
        return FixedSource(request.study, plan)
    proposals = Proposals(request.study, request.home.optuna_url)
    return SearchSource(request.study, request.store, proposals)


def _conclude(request: Request, results: Sequence[RunResult], report: "Report") -> int:
    """Say what failed and what to type next."""
    if request.history.ended is not None:
        click.echo(f"{request.study.name}: the search {request.history.ended}", err=True)
    unfinished = [result for result in results if result.outcome != "complete"]
    for result in unfinished:
        reason = result.failure.message if result.failure else "not trained yet"
        click.echo(f"{result.run.arm} seed {result.run.seed} {result.outcome}: {reason}", err=True)
    click.echo(f"report    {report.folder / 'report.html'}", err=True)
    place = f"mixsweep ui --home {shlex.quote(str(request.home.folder))}"
    click.echo(f"tracking  {request.home.tracking_server or place}", err=True)
    if any(result.outcome != "diverged" for result in unfinished):
        click.echo(f"next      {request.spell('run')}", err=True)
    return SOME_FAILED if unfinished else DONE


def _announcement(request: Request, plan: Plan) -> str:
    study = request.study
    if study.search is not None:
        points = request.history.points
        closed = sum(point.state != "open" for point in points)
        return (
            f"{study.name}: {study.search.points} points by {study.search.sampler}, {closed} told, "
            f"{len(points) - closed} open; {len(plan.finished)} runs stored"
        )
    if not plan.pending:
        return f"{study.name}: {len(plan.finished)} runs are stored, nothing to train"
    shared = plan.epochs_naive - plan.epochs_planned
    return (
        f"{study.name}: {len(plan.pending)} runs to train, {len(plan.finished)} stored; "
        f"{plan.epochs_planned} epochs" + (f" ({shared} stored or shared)" if shared else "")
    )


for command in (
    plan,
    status,
    submit,
    store_commands,
    data,
    doctor,
    schema,
    list_studies,
):
    commands.add_command(command)


if __name__ == "__main__":
    main()
