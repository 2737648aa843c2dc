"""run: train the missing runs of a study, then write its report."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from mixsweep.cli.conclusion import keep, recall
from mixsweep.cli.ending import Ending
from mixsweep.cli.memory import require_memory, with_memory, with_room
from mixsweep.cli.options import AtLeastZero, placement_options, without_secret
from mixsweep.cli.preconditions import (
    has_usable_gpu,
    is_installed,
    look_at_data,
    require_address_space,
    require_data,
    require_inline,
    require_room,
)
from mixsweep.cli.recorded_line import command_line
from mixsweep.cli.report import conclude, write_report
from mixsweep.cli.request import SOME_FAILED, RefusedError, Request, on_studies
from mixsweep.cli.sync import bringing_up_to_date, log_network, open_tracker, settled_if_cut
from mixup_core.addresses import web_address
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.leasing.lease import Lease
from sweeps.machine.forced_end import cleaned_by_force
from sweeps.machine.scratch import clear_scratch
from sweeps.running.cluster_address import choose_cluster
from sweeps.running.console import still
from sweeps.running.head import HeadLostError
from sweeps.running.placement import Placement
from sweeps.state.ledger import enter
from sweeps.state.passing import let_results_stay
from sweeps.state.results import RunResult, ended_on_budget, read_results
from sweeps.state.stages import Plan, plan_study
from sweeps.state.statements import look, state
from sweeps.study.study import Study

if TYPE_CHECKING:
    from sweeps.searching.sources import RunSource
    from sweeps.tracking.tracker import Tracker


class SearchLostError(Exception):
    """Optuna's database stopped answering while a search was running."""


@click.command()
@on_studies
@placement_options
@click.option(
    "--address",
    callback=without_secret(web_address, "RAY_ADDRESS"),
    help="Ray cluster to train on; default: this machine.",
)
@click.option(
    "--engine",
    type=click.Choice(["ray", "inline"]),
    default="ray",
    show_default=True,
    help="inline: train one run after another in this process, seed by seed, without Ray. Use it "
    "in a debugger, or if Ray is not installed.",
)
@click.option(
    "--until",
    type=AtLeastZero(),
    metavar="SECONDS",
    help="With --engine inline: start no run that would end more than this many seconds after the "
    "start of the command.",
)
@click.option(
    "--again",
    is_flag=True,
    help="Train diverged runs again, from their last stored stage. This helps only after a change "
    "of machine or versions; otherwise they diverge again.",
)
@click.option(
    "--on-finish",
    metavar="COMMAND",
    is_eager=True,  # also runs after a study file was rejected
    expose_value=False,
    callback=lambda context, _, command: setattr(context.ensure_object(Ending), "command", command),
    help="Shell command to run when this command ends, also after an error, with MIXSWEEP_STUDY, "
    "MIXSWEEP_EXIT_CODE and MIXSWEEP_REPORT in its environment.",
)
def run(  # noqa: C901, PLR0913  its options, and the ways in which a launch ends
    request: Request,
    slots: int | None,
    gpus_per_run: float | Literal["auto"] | None,
    cpus_per_run: int,
    device: Literal["cpu"] | None,
    address: str | None,
    engine: Literal["ray", "inline"],
    until: float | None,
    keep_final_states: bool,
    again: bool,
) -> int:
    """Train the missing runs of studies, one study after another, and write their reports."""
    started_at = time.monotonic()
    ending = click.get_current_context().ensure_object(Ending)
    ending.study, ending.leaves_files = request.study.name, True
    is_inline = engine == "inline"
    if is_inline:
        require_inline(request, slots, gpus_per_run, cpus_per_run, address)
    elif until is not None:
        raise RefusedError("--until needs --engine inline")
    placed = Placement(slots=slots, cpus_per_run=cpus_per_run, device=device)
    placement = (
        placed.auto() if gpus_per_run == "auto" else replace(placed, gpus_per_run=gpus_per_run)
    )
    if not is_inline:
        choose_cluster(address)
    require_data(request)
    tracks = not is_inline or is_installed("mlflow")
    if tracks:
        request.require_databases()
    store, study = request.store, request.study
    cut = Lease.cut_off(store, study.name)
    with (
        Lease.acquire(store, study.name, command_line()) as lease,
        cleaned_by_force(lease.release),
    ):
        if cut is not None:
            click.echo(cut.spell_death(), err=True)
        clear_scratch()
        if again:
            _forget_divergence(request)
        state(study, store)
        request = request.refreshed()
        plan = plan_study(request.grown, store, keep_final_states=keep_final_states)
        if let_results_stay(plan.finished, store):
            plan = plan_study(request.grown, store, keep_final_states=keep_final_states)
        ended = ended_on_budget(study, request.results()) if study.budget.limits else None
        click.echo(_announcement(request, plan, ended), err=True)
        is_over = study.search is None and (not plan.pending or ended is not None)
        if is_over and (left := recall(request, stored := request.results())) is not None:
            ending.report = left.folder
            click.echo(left.screen)
            return conclude(request, stored, left, is_inline=is_inline)
        if not is_over:
            require_room(request, plan)
            if not is_inline:
                require_address_space()
            look_at_data(study)
            if is_inline:
                require_memory(request.grown, placement)
            elif slots is None:
                placement = with_memory(placement, request.grown, len(plan.pending))
        if not plan.finished:
            request.say_elsewhere()
        begun_ms = enter(request.grown, store, command_line())
        source = _source(request, plan, keep_final_states)
        tracker = _opened_tracker(request, lease, is_over, tracks=tracks, is_inline=is_inline)
        with settled_if_cut(tracker, store):
            if not is_over and not is_inline:
                tracker.load_ahead("sweeps.running.tuning", at_once=True)
            with still("opening MLflow"):
                tracker.start(request.results())
            ending.has_trained = not is_over
            try:
                if is_over:
                    results = request.results()
                elif is_inline:
                    at = None if until is None else started_at + until
                    on_gpu = has_usable_gpu(gpus_per_run, device)
                    results = _train_inline(
                        source, store, tracker, lease, on_gpu, at, keep_final_states
                    )
                else:
                    tracker.load_ahead("reports.pages.build")
                    with_more = partial(_source_again, request, keep_final_states)
                    # From here on `source` is the one in training.
                    for source, placement in with_room(source, with_more, placement):  # noqa: B020
                        results = _train(
                            source, store, tracker, lease, placement, keep_final_states
                        )
                _require_whole(source, request)
                request = request.refreshed()
                with still("writing the report"):
                    report = write_report(request, source.study, results, None)
                ending.report = report.folder
                tracker.grow(source.study)
                tracker.log_report(report.folder, report.markdown)
                log_network(tracker, source.study, store)
                enter(source.study, store, command_line(), begun_ms)
            except HeadLostError:
                raise
            except Exception:
                _close(tracker, source, store)
                raise
            _close(tracker, source, store)
        if tracker.trouble is None:
            keep(request, results, report)
    click.echo(report.screen)
    if tracker.trouble is not None:
        click.echo(f"tracking is incomplete: {tracker.trouble}", err=True)
        click.echo(f"when the cause is fixed, run: {request.spell('sync')}", err=True)
    code = conclude(request, results, report, is_inline=is_inline)
    return SOME_FAILED if tracker.was_refused else code


def _forget_divergence(request: Request) -> None:
    """Delete the stored failures of diverged runs, so that they are trained again.

    The caller must hold the lease of the study.
    """
    for result in request.results():
        if result.outcome == "diverged":
            request.store.failures.remove(result.run.key)


def _train(  # noqa: PLR0913  each is a thing of its own, opened by the caller
    source: "RunSource",
    store: Store,
    tracker: "Tracker",
    lease: Lease,
    placement: Placement,
    keep_final_states: bool,
) -> tuple[RunResult, ...]:
    from sweeps.running.launch import train

    return train(source, store, tracker, lease, placement, keep_final_states=keep_final_states)


def _train_inline(  # noqa: PLR0913  each is a thing of its own, opened by the caller
    source: "RunSource",
    store: Store,
    tracker: "Tracker",
    lease: Lease,
    on_gpu: bool,
    until: float | None,
    keep_final_states: bool,
) -> tuple[RunResult, ...]:
    from sweeps.running.inline import Deadline, train_inline

    return train_inline(
        source,
        store,
        tracker,
        lease,
        device="cuda" if on_gpu else "cpu",
        deadline=Deadline(at=until),
        keep_final_states=keep_final_states,
    )


def _opened_tracker(
    request: Request, lease: Lease, is_over: bool, *, tracks: bool, is_inline: bool
) -> "Tracker":
    """Return a tracker (the object that writes results to MLflow) that is not started yet.

    Before training, the tracker's thread imports MLflow while Ray starts. The import order matters,
    because two threads must not import packages that import each other. So Ray is imported first,
    in this thread. For a search, Tune and MLflow are imported in this thread too, because the
    search's sampler may import any package.
    """
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


def _source_again(request: Request, keep_final_states: bool) -> "RunSource":
    request = request.refreshed()
    plan = plan_study(request.grown, request.store, keep_final_states=keep_final_states)
    return _source(request, plan, keep_final_states)


def _require_whole(source: "RunSource", request: Request) -> None:
    """Check that a search proposed all of its points.

    Raises:
        SearchLostError: If Optuna's database stopped answering before that.
    """
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


def _reached_by_look(request: Request) -> Study:
    """Take a planned look; return the study with the seeds that its arms need so far."""
    from reports.numbers.claim_looks import reached_study

    study = reached_study(request.study, request.store)
    look(study, request.store, read_results(study.runs(), request.store), is_report=False)
    return study


def _source(request: Request, plan: Plan, keep_final_states: bool) -> "RunSource":
    from sweeps.searching.looks_source import LooksSource
    from sweeps.searching.search_source import SearchSource
    from sweeps.searching.sources import BudgetedSource, FixedSource

    if request.study.until is not None:
        reach = partial(_reached_by_look, request)
        return LooksSource(request.study, request.store, reach, keep_final_states=keep_final_states)
    if request.study.search is None:
        if request.study.budget.limits:
            return BudgetedSource(request.study, plan, request.store)
        return FixedSource(request.study, plan)
    from sweeps.searching.proposals import Proposals

    owner = request.search_owner(is_writing=True)
    proposals = Proposals(request.study, request.home.optuna_url, owner)
    source = SearchSource(request.study, request.store, proposals)
    if source.num_known:
        points = "1 point is" if source.num_known == 1 else f"{source.num_known} points are"
        click.echo(f"{request.study.name}: {points} known from stored results", err=True)
    return source


def _announcement(request: Request, plan: Plan, ended: str | None) -> str:
    study = request.study
    if study.search is not None:
        points = request.history.points
        closed = sum(point.state != "open" for point in points)
        return (
            f"{study.name}: {study.search.points} points by {study.search.strategy.sampler}, "
            f"{closed} evaluated, {len(points) - closed} open; {len(plan.finished)} runs stored"
        )
    if ended is not None:
        return f"{study.name}: the study {ended}; nothing to train"
    if not plan.pending:
        return f"{study.name}: {len(plan.finished)} runs are stored, nothing to train"
    shared = plan.epochs_naive - plan.epochs_planned
    sizes = [] if study.until is None else study.until.sizes
    return (
        f"{study.name}: {len(plan.pending)} runs to train, {len(plan.finished)} stored; "
        f"{plan.epochs_planned} epochs"
        + (f" ({shared} stored or shared)" if shared else "")
        + (f"; looks at {', '.join(map(str, sizes))} seeds" if sizes else "")
    )
