"""The command `mixsweep`. Ray, MLflow and torch are loaded only by the commands that use them."""

import contextlib
import errno
import json
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import click

from mixup_core.catalog import DataError
from mixup_core.checkpoints import Store
from mixup_core.fetching import checksums, data_root, fetch, is_present, statuses
from mixup_core.files import StoreError, StoreFullError
from sweeps.holders import StudyBusyError, StudyLostError
from sweeps.home import Home
from sweeps.housekeeping import prune, spell_stock, take_stock
from sweeps.lease import Lease
from sweeps.placement import Placement, PlacementError
from sweeps.results import RunResult, read_results
from sweeps.search import SearchHistory
from sweeps.selection import grown_study
from sweeps.stages import Plan, plan_study
from sweeps.study import Study
from sweeps.study_file import StudyError, bundled_studies, load_study, study_schema
from sweeps.summaries import plan_summary, spell_plan, spell_status, status_summary

if TYPE_CHECKING:
    from reports.build import Report
    from sweeps.projection import Tracker
    from sweeps.sources import RunSource

DONE, SOME_FAILED, BAD_INPUT, BUSY, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes."""

_CLUSTER_PATIENCE = 10.0
"""Seconds to wait for a cluster's port."""


class RefusedError(Exception):
    """A request that cannot be met, in one line for the user."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A study and where its results are."""

    reference: str
    """The study as it was named."""
    overrides: tuple[str, ...]
    """What was overridden in it."""
    study: Study
    """As its file says, without the points of a search."""
    home: Home
    """Where everything is kept."""

    @cached_property
    def history(self) -> SearchHistory:
        """What has been proposed by now, if the study is a search."""
        if self.study.search is None:
            return SearchHistory()
        from sweeps.proposals import read_history

        return read_history(self.study, self.home.optuna_url)

    @property
    def grown(self) -> Study:
        """The study with the points and the confirmation that it has by now."""
        return grown_study(self.study, self.history, self.store)

    @property
    def store(self) -> Store:
        """The checkpoint store."""
        return Store(self.home.store)

    def results(self) -> tuple[RunResult, ...]:
        """Return what is stored of each run."""
        return read_results(self.grown.runs(), self.store)

    def spell(self, verb: str) -> str:
        """Return the command line that does something else with the same study and places."""
        places = {
            "--home": str(self.home.folder),
            "--store": self.home.store_url,
            "--tracking-uri": self.home.tracking_server,
            "--optuna": self.home.optuna,
        }
        given = [part for name, place in places.items() if place for part in (name, place)]
        overrides = [part for override in self.overrides for part in ("--set", override)]
        return shlex.join(["mixsweep", verb, self.reference, *overrides, *given])

    def refreshed(self) -> "Request":
        """Return the request without what it remembers of its search, which has gone on."""
        return replace(self)

    def data_checksums(self) -> dict[str, dict[str, str]]:
        """Return data set to file to checksum, for the provenance of a report."""
        merged: dict[str, dict[str, str]] = {}
        seen = {(c.data.name, c.data.folder, c.data.test): c.data for c in self.study.arms.values()}
        for data in seen.values():
            if is_present(data.name, data_root()):
                merged.setdefault(data.name, {}).update(checksums(data))
        return merged


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
    except StoreFullError as error:
        code = _say(error, SOME_FAILED)
    except (StudyError, DataError, StoreError, PlacementError, RefusedError) as error:
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


def _on_study(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command its study, its home and `--set`."""

    def with_request(  # noqa: PLR0913  the options that every command on a study has
        study: str,
        home: Path,
        store_url: str | None,
        tracking: str | None,
        optuna: str | None,
        overrides: Sequence[str],
        **options: Any,
    ) -> int:
        request = Request(
            reference=study,
            overrides=tuple(overrides),
            study=load_study(study, overrides),
            home=Home(folder=home, store_url=store_url, tracking=tracking, optuna=optuna),
        )
        return command(request, **options)

    with_request.__name__, with_request.__doc__ = command.__name__, command.__doc__
    wrapped: Any = with_request
    for decorate in (
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="PATH=VALUE",
            help="Override a path of the study file, e.g. seeds=6; repeatable.",
        ),
        click.option(
            "--tracking-uri",
            "tracking",
            envvar="MLFLOW_TRACKING_URI",
            help="MLflow server or database; default: mlflow.db in the home.",
        ),
        click.option(
            "--optuna",
            help="Storage of a search, a database URL or the path of a journal file; "
            "default: optuna.db in the home.",
        ),
        _store_option,
        _home_option,
        click.argument("study"),
    ):
        wrapped = decorate(wrapped)
    wrapped.__click_params__.extend(getattr(command, "__click_params__", []))
    decorated: Callable[..., int] = wrapped
    return decorated


_home_option = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    envvar="MIXSWEEP_HOME",
    show_default=True,
    help="Folder that holds all results.",
)
_store_option = click.option(
    "--store",
    "store_url",
    help="Checkpoint store, a path or an fsspec URL; default: store/ in the home.",
)
_json_option = click.option("--json", "as_json", is_flag=True, help="For machines.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mixsweep")
def commands() -> None:
    """Studies of mixup training, from a study file to a table.

    STUDY is a bundled study or the path of a study file. Exit codes: 0 all done, 1 some runs
    failed or are missing, 2 bad input, 3 another driver holds the study, 130 interrupted.
    """


@commands.command()
@_on_study
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    help="Runs trained side by side; default: what CPUs or GPUs hold, also of nodes that join.",
)
@click.option(
    "--gpus-per-run",
    type=click.FloatRange(min=0),
    help="0, 1 or 1/k; default: 1 where there are GPUs.",
)
@click.option(
    "--cpus-per-run",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="CPUs reserved for a run, which computes in one thread all the same.",
)
@click.option(
    "--device",
    type=click.Choice(["cpu"]),
    help="cpu: compute there though GPUs are reserved, to rehearse a placement.",
)
@click.option("--address", help="Ray cluster to train on; default: this machine.")
@click.option(
    "--keep-final-states",
    is_flag=True,
    help="Keep the weights of finished runs, so that longer runs can go on from them.",
)
def run(  # noqa: PLR0913  its options
    request: Request,
    slots: int | None,
    gpus_per_run: float | None,
    cpus_per_run: int,
    device: Literal["cpu"] | None,
    address: str | None,
    keep_final_states: bool,
) -> int:
    """Train what is missing of a study, then write its report."""
    placement = Placement(
        slots=slots, gpus_per_run=gpus_per_run, cpus_per_run=cpus_per_run, device=device
    )
    if address is not None:
        _require_cluster(address)
        os.environ["RAY_ADDRESS"] = address
    from sweeps.launch import train

    _require_data(request.study)
    store, study = request.store, request.study
    with Lease.acquire(store, study.name, _command_line()) as lease:
        plan = plan_study(request.grown, store)
        click.echo(_announcement(request, plan), err=True)
        source = _source(request, plan)
        tracker = _tracker(request, lease)
        tracker.start(request.results())
        try:
            results = train(
                source, store, tracker, lease, placement, keep_final_states=keep_final_states
            )
            request = request.refreshed()
            report = _report(request, results, None)
            tracker.grow(source.study)
            tracker.log_report(report.folder, report.markdown)
        finally:
            tracker.grow(source.study)
            arrived = tracker.close(read_results(source.study.runs(), store))
    click.echo(report.markdown)
    if not arrived:
        click.echo(
            f"tracking is incomplete; when the server is back: {request.spell('sync')}", err=True
        )
    return _conclude(request, results, report)


@commands.command()
@_on_study
@_json_option
def plan(request: Request, as_json: bool) -> int:
    """Say what a launch would train and cost; touch nothing."""
    summary = plan_summary(request.grown, request.store, slots=os.cpu_count() or 1)
    click.echo(json.dumps(summary, indent=2) if as_json else spell_plan(summary))
    return DONE


@commands.command()
@_on_study
@_json_option
def status(request: Request, as_json: bool) -> int:
    """Say how far a study is, running or not."""
    summary = status_summary(request.grown, request.store)
    click.echo(json.dumps(summary, indent=2) if as_json else spell_status(summary))
    return DONE


@commands.command()
@_on_study
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
@_on_study
def sync(request: Request) -> int:
    """Bring MLflow to exactly what the store holds, from an empty database too."""  # noqa: DOC501
    with Lease.acquire(request.store, request.study.name, _command_line()) as lease:
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
@_home_option
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


@commands.group("store")
def store_commands() -> None:
    """Say what the checkpoint store holds, check it, and free what is not needed."""


def _on_store(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the store of a home and some studies."""

    def with_store(
        home: Path, store_url: str | None, studies: Sequence[str], **options: Any
    ) -> int:
        store = Store(Home(folder=home, store_url=store_url).store)
        by_name = {study.name: study for study in map(load_study, studies)}
        return command(store, tuple(by_name.values()), **options)

    with_store.__name__, with_store.__doc__ = command.__name__, command.__doc__
    wrapped: Any = with_store
    for decorate in (_store_option, _home_option, click.argument("studies", nargs=-1)):
        wrapped = decorate(wrapped)
    wrapped.__click_params__.extend(getattr(command, "__click_params__", []))
    decorated: Callable[..., int] = wrapped
    return decorated


@store_commands.command("list")
@_on_store
def list_store(store: Store, studies: Sequence[Study]) -> int:
    """Say what is stored of some STUDIES, what of others, and what could be freed."""
    click.echo(spell_stock(take_stock(studies, store), len(store.quarantined())))
    return DONE


@store_commands.command("verify")
@_home_option
@_store_option
def verify_store(home: Path, store_url: str | None) -> int:
    """Check every file against its sha256; damaged ones are put aside, exit code 1."""
    problems = Store(Home(folder=home, store_url=store_url).store).verify()
    for problem in problems:
        click.echo(problem, err=True)
    click.echo(f"{len(problems)} files are damaged or missing" if problems else "all is well")
    return SOME_FAILED if problems else DONE


@store_commands.command("prune")
@_on_store
@click.option("--yes", is_flag=True, help="Remove them; without it they are only listed.")
def prune_store(store: Store, studies: Sequence[Study], yes: bool) -> int:
    """Free the states that no run of some STUDIES will start from; every record stays."""  # noqa: DOC501
    if not studies:
        raise RefusedError("name the studies whose runs are to be looked at")
    with contextlib.ExitStack() as leases:
        if yes:
            for study in studies:
                leases.enter_context(Lease.acquire(store, study.name, _command_line()))
        stock = take_stock(studies, store)
        click.echo(spell_stock(stock, len(store.quarantined())))
        for holding in stock:
            for stage in holding.prunable:
                click.echo(f"{holding.title}  state of {stage.epochs} epochs, stage {stage.key}")
        if yes:
            click.echo(f"freed {prune(stock, store) / 1e6:,.1f} MB")
        elif any(holding.prunable for holding in stock):
            click.echo("nothing was removed; add --yes", err=True)
    return DONE


@commands.group()
def data() -> None:
    """Say which data sets are here, and fetch them."""


@data.command("list")
def list_data() -> int:
    """List the data sets and where they are."""
    for found in statuses(data_root()):
        here = found.place if found.is_present else f"missing; mixsweep data fetch {found.name}"
        click.echo(f"{found.name:<14} {here}")
    return DONE


@data.command("fetch")
@click.argument("name")
def fetch_data(name: str) -> int:
    """Bring a data set to this machine; one that is already there is left alone."""
    click.echo(f"{name}: {fetch(name, data_root())}")
    return DONE


@commands.command()
@_home_option
def doctor(home: Path) -> int:
    """Say what this machine has and lacks."""
    from sweeps.doctor import findings

    for line in findings(Home(folder=home)):
        click.echo(line)
    return DONE


@commands.command()
def schema() -> int:
    """Print the JSON Schema of a study file, for editors."""
    click.echo(json.dumps(study_schema(), indent=2))
    return DONE


@commands.command("studies")
def list_studies() -> int:
    """List the bundled studies."""
    for name, description in bundled_studies().items():
        summary, _, _ = description.partition(". ")
        click.echo(f"{name:<18} {summary}")
    return DONE


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
    from reports.provenance import describe_code
    from reports.statistics import summarise_runs
    from sweeps.projection import Projection, Tracker

    code = describe_code()
    return Tracker(
        Projection(
            request.grown,
            request.home.tracking_uri,
            summarise=summarise_runs,
            artifact_location=request.home.artifact_location,
            tags={} if code is None else {"commit": code["commit"], "dirty": str(code["dirty"])},
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
        command=_command_line(),
        history=request.history,
    )


def _source(request: Request, plan: Plan) -> "RunSource":
    from sweeps.proposals import Proposals, SamplerError
    from sweeps.sources import FixedSource, SearchSource

    if request.study.search is None:
        return FixedSource(request.study, plan)
    try:
        proposals = Proposals(request.study, request.home.optuna_url)
    except SamplerError as error:
        raise RefusedError(str(error)) from error
    return SearchSource(request.study, request.store, proposals)


def _conclude(request: Request, results: Sequence[RunResult], report: "Report") -> int:
    """Say what failed and what to type next."""
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


def _command_line() -> str:
    return shlex.join(["mixsweep", *sys.argv[1:]])


if __name__ == "__main__":
    main()
