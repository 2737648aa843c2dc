"""Launch: trains the missing runs of a study and writes its report.

The command `run` and `mixsweep.run` call the same function. It ends no process and handles no
signal of a process that does not belong to it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import click

from mixsweep.launching.conclusion import Conclusion, keep, recall, write_report
from mixsweep.launching.preconditions import (
    has_usable_gpu,
    is_installed,
    look_at_data,
    require_address_space,
    require_data,
    require_gpu_here,
    require_inline,
    require_room,
)
from mixsweep.launching.sources import source_of
from mixsweep.launching.tracked import (
    bringing_up_to_date,
    log_network,
    open_tracker,
    settled_if_cut,
)
from mixsweep.request import RefusedError, Request
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.leasing.lease import Lease
from sweeps.machine.scratch import clear_scratch
from sweeps.machine.terminal_text import still
from sweeps.machine.watchdog import cleaned_by_force
from sweeps.running.head import HeadLostError, choose_cluster
from sweeps.running.placement import Placement
from sweeps.state.ledger import enter
from sweeps.state.results import RunResult, ended_on_budget, read_results
from sweeps.state.stages import Plan, plan_keeping_results, plan_study
from sweeps.state.statements import state
from sweeps.study.study import Run

if TYPE_CHECKING:
    from reports.pages.build import Report
    from sweeps.searching.sources import RunSource
    from sweeps.tracking.rows import LoggedEpoch
    from sweeps.tracking.tracker import Tracker


class SearchLostError(Exception):
    """Optuna's database stopped answering while a search was running."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchOptions:
    """Options of a launch for training the runs of its study."""

    engine: Literal["ray", "inline"] = "ray"
    """`ray` distributes runs; `inline` trains one after another in this process, without Ray."""
    slots: int | None = None
    """Number of parallel runs; None for as many as CPUs or GPUs allow."""
    gpus_per_run: float | None = None
    """GPUs per run; None for 1 if there are GPUs."""
    address: str | None = None
    """HOST:PORT of the Ray cluster to train on; None for RAY_ADDRESS, or else this machine."""
    until: float | None = None
    """Seconds after which no run may be in training; only with the inline engine."""
    keep_final_states: bool = False
    """True if the weights of finished runs are kept."""
    again: bool = False
    """True if diverged runs are trained again."""
    device: str | None = None
    """Accelerator type, resource or label of the nodes to train on; None for all nodes. `cpu`, or
    `:cpu` at the end, computes on the CPU although GPUs are reserved; used to test placements."""

    @property
    def is_inline(self) -> bool:
        return self.engine == "inline"

    @property
    def placement(self) -> Placement:
        """The requested placement of runs on CPUs and GPUs."""
        kind, _, last = (self.device or "").rpartition(":")
        on_cpu = last == "cpu"
        return Placement(
            slots=self.slots,
            gpus_per_run=self.gpus_per_run,
            device="cpu" if on_cpu else None,
            kind=(kind or None) if on_cpu else self.device,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Launched:
    """Output of a launch: the results of the study and its report."""

    request: Request
    """The study, with the points and seeds that were added during the launch."""
    results: Sequence[RunResult]
    report: "Report | Conclusion"
    is_refused: bool = False
    """True if MLflow rejected some of the results."""


OnEpoch = Callable[[str, int, int, Mapping[str, float]], object]
"""Function that gets the arm, the seed, the epoch (counted from 1) and its metrics."""


def launch(
    request: Request,
    options: LaunchOptions,
    *,
    begin: Callable[[], None] = lambda: None,
    on_epoch: OnEpoch | None = None,
) -> Launched:
    """Train the missing runs of a study and write its report.

    With Ray, this process must belong to the launch: Ray ends it if its cluster dies, and its child
    processes are ended after an interrupt. `mixsweep.run` therefore starts another process.
    """
    started_at = time.monotonic()
    if options.is_inline:
        require_inline(
            request, options.slots, options.gpus_per_run, options.address, options.placement.kind
        )
    elif options.until is not None:
        raise RefusedError("--until needs --engine inline")
    else:
        choose_cluster(options.address)
        require_gpu_here(options.placement)
    require_data(request)
    tracks = not options.is_inline or is_installed("mlflow")
    if tracks:
        request.require_databases()
    store, name = request.store, request.study.name
    cut = Lease.cut_off(store, name)
    with (
        Lease.acquire(store, name, request.command) as lease,
        cleaned_by_force(lease.release),
    ):
        if cut is not None:
            click.echo(cut.spell_death(), err=True)
        if not options.is_inline:
            clear_scratch()
        for result in request.results() if options.again else ():
            if result.outcome == "diverged":
                store.failures.remove(result.run.key)
        # Order matters: record the claims before a run is trained. Otherwise they would count as
        # stated after their runs; no test covers it.
        state(request.study, store)
        request = request.refreshed()
        plan = plan_keeping_results(store, lambda: _plan(request, options.keep_final_states))
        is_over = _announce(request, plan)
        if is_over and (conclusion := recall(request, stored := request.results())) is not None:
            return Launched(request=request, results=stored, report=conclusion)
        if not is_over:
            begin()
        on_epochs = _each_once(on_epoch)
        end_at = None if options.until is None else started_at + options.until
        return _launch(
            request, options, lease, plan, is_over=is_over, tracks=tracks, at=end_at, told=on_epochs
        )


def _each_once(on_epoch: OnEpoch | None) -> "Callable[[Run, Sequence[LoggedEpoch]], None]":
    """Return a function that passes each epoch of a run once to the function of the caller."""
    seen = set[tuple[str, int]]()
    if on_epoch is None:
        return lambda *_: None

    def tell(run: Run, epochs: "Sequence[LoggedEpoch]") -> None:
        for record, _ in epochs:
            if (run.key, record.epoch) in seen:
                continue
            seen.add((run.key, record.epoch))
            on_epoch(run.arm, run.seed, record.epoch + 1, MappingProxyType(record.metrics))

    return tell


def _launch(  # noqa: PLR0913  the parts of a launch, opened by the caller, and its endings
    request: Request,
    options: LaunchOptions,
    lease: Lease,
    plan: Plan,
    *,
    is_over: bool,
    tracks: bool,
    at: float | None,
    told: "Callable[[Run, Sequence[LoggedEpoch]], None]",
) -> Launched:
    """Train the planned runs, track them, and write the report; the caller holds the lease."""
    store, keeps = request.store, options.keep_final_states
    placement = options.placement
    if not is_over:
        _check(request, options, plan)
    if not plan.finished:
        request.say_elsewhere()
    begun = request.grown
    begun_ms = enter(begun, store, request.command)
    source = source_of(request, plan, keeps)
    tracker = _opened_tracker(request, lease, is_over, tracks=tracks, is_inline=options.is_inline)
    tracker.on_epochs = told
    with settled_if_cut(tracker, store):
        if not is_over and not options.is_inline:
            tracker.load_ahead("sweeps.running.tuning", at_once=True)
        with still("opening MLflow"):
            tracker.start(request.results())
        try:
            if is_over:
                results = request.results()
            elif options.is_inline:
                from sweeps.running.inline import Deadline, train_inline

                on_gpu = placement.device is None and has_usable_gpu(options.gpus_per_run)
                device, deadline = "cuda" if on_gpu else "cpu", Deadline(at=at)
                results = train_inline(
                    source, store, tracker, lease, device=device, deadline=deadline,
                    keep_final_states=keeps,
                )  # fmt: skip
            else:
                from sweeps.running.launch import train

                tracker.load_ahead("reports.pages.build")
                results = train(source, store, tracker, lease, placement, keep_final_states=keeps)
            _require_whole(source, request)
            request = request.refreshed()
            with still("writing the report"):
                report = write_report(request, source.study, results, None)
            tracker.grow(source.study)
            tracker.log_report(report.folder, report.markdown)
            log_network(tracker, source.study, store)
        except HeadLostError:
            raise
        except Exception:
            _close(tracker, source, store)
            raise
        finally:
            # Also of a launch that was cut: `status` would call its study finished.
            if source.study.runs() != begun.runs() and lease.is_held():
                enter(source.study, store, request.command, begun_ms)
        _close(tracker, source, store)
    if tracker.trouble is None:
        keep(request, results, report)
    else:
        click.echo(f"tracking is incomplete: {tracker.trouble}", err=True)
        click.echo(f"when the cause is fixed, run: {request.spell('sync')}", err=True)
    return Launched(request=request, results=results, report=report, is_refused=tracker.was_refused)


def _plan(request: Request, keeps: bool) -> Plan:
    return plan_study(request.grown, request.store, keep_final_states=keeps)


def _check(request: Request, options: LaunchOptions, plan: Plan) -> None:
    """Check disk, memory and data before training."""
    require_room(request, plan)
    if not options.is_inline:
        require_address_space()
    look_at_data(request.study)


def _opened_tracker(
    request: Request, lease: Lease, is_over: bool, *, tracks: bool, is_inline: bool
) -> "Tracker":
    """Return a tracker (the object that writes results to MLflow) that is not started yet."""
    is_search = request.study.search is not None
    if not tracks:
        from sweeps.tracking.tracker import Tracker

        return Tracker(None)
    if not is_over and not is_inline:
        with still("loading Ray"):
            import sweeps.running.launch  # noqa: F401

            if is_search:
                import sweeps.running.tuning  # noqa: F401
    with still("opening MLflow"):
        return open_tracker(request, lease, loads_mlflow=is_over or is_search or is_inline)


def _require_whole(source: "RunSource", request: Request) -> None:
    if source.trouble is not None:
        raise SearchLostError(
            f"{source.trouble}\ntrained runs are stored; next  {request.spell('run')}"
        )


def _close(tracker: "Tracker", source: "RunSource", store: Store) -> None:
    """Write the remaining results to MLflow and close the tracker."""
    tracker.grow(source.study)
    stored: Sequence[RunResult] = ()
    with suppress(StoreError):  # a failing store may have ended the launch
        stored = read_results(source.study.runs(), store)
    with bringing_up_to_date(tracker):
        tracker.close(stored)


def _announce(request: Request, plan: Plan) -> bool:
    """Print what the launch will train; return True if nothing is left to train."""
    study, num_stored = request.study, len(plan.finished)
    ended = ended_on_budget(study, request.results()) if study.budget.limits else None
    if study.search is not None:
        points = request.history.points
        num_closed = sum(point.state != "open" for point in points)
        text = f"{study.search.points} points by {study.search.strategy.sampler}, "
        text += f"{num_closed} evaluated, {len(points) - num_closed} open; {num_stored} runs stored"
    elif ended is not None:
        text = f"the study {ended}; nothing to train"
    elif not plan.pending:
        text = f"{num_stored} runs are stored, nothing to train"
    else:
        count = len(plan.pending)
        text = f"{count} run{'s' * (count != 1)} to train, {num_stored} stored; "
        text += f"{plan.epochs_planned} epochs"
        if shared := plan.epochs_naive - plan.epochs_planned:
            text += f" ({shared} stored or shared)"
        if study.until is not None:
            text += f"; looks at {', '.join(map(str, study.until.sizes))} seeds"
    click.echo(f"{study.name}: {text}", err=True)
    return study.search is None and (not plan.pending or ended is not None)
