"""Run story: which runs trained the stored epochs of a run, and why a run is missing."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import click

from mixsweep.request import RefusedError, Request
from mixup_core.keys import run_key, stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from sweeps.leasing.lease import Lease
from sweeps.machine.terminal_text import fitted_text
from sweeps.reading.tree_reader import named
from sweeps.state.ledger import Launch, launches
from sweeps.state.results import (
    Addition,
    RunResult,
    begun_seeds,
    ended_on_budget,
    trained_by,
)
from sweeps.state.stages import PlannedRun, plan_study
from sweeps.study.study import spell_seeds


def tell_runs(request: Request, arm: str, seed: int | None) -> None:
    """Print where the results of an arm's runs come from, or why they were not trained.

    For each run: its key, its stored stages with the study, arm and seed that trained them, the
    epochs that the next launch would train, and its error. With a seed, also every stored epoch.
    """
    study, results = request.grown, request.results()
    found = _chosen_results(request, arm, seed)
    plan = plan_study(study, request.store)
    planned = {pending.run.key: pending for pending in plan.pending}
    launched = launches(request.store)
    trainers, others = _trainers(request, launched), _others(request, launched)
    stored = request.store.keys()
    ended = ended_on_budget(study, results)
    begun = begun_seeds(results)
    cut = Lease.cut_off(request.store, study.name)
    at_end = set() if cut is None else {(run.arm, run.seed) for run in cut.running}
    metrics = "train/loss", *study.problem.headline
    for result in found:
        is_left_out = ended is not None and result.run.seed not in begun
        for line in (
            *_outcome(result, ended if is_left_out else None, request),
            *(_epochs(result, metrics) if seed is not None else ()),
            *_stages(result, request.store, stored, trainers, others.get(result.run.key, "")),
            *_next(result, planned.get(result.run.key), trainers, is_left_out=is_left_out),
        ):
            click.echo(fitted_text(line))
        if cut is not None and (result.run.arm, result.run.seed) in at_end:
            click.echo(fitted_text(f"  killed    {cut.spell_death()}"))
        for line in _trace(result):
            click.echo(fitted_text(f"  {line}"))
    for one in dict.fromkeys(result.run.arm for result in found):
        if seed is None and (reason := _pruned(request, one)):
            click.echo(fitted_text(reason))
    if any(result.outcome == "missing" for result in found):
        request.say_elsewhere()


def _chosen_results(request: Request, arm: str, seed: int | None) -> list[RunResult]:
    """Return the results of all runs of a study, of one arm, or of an arm at one seed."""
    study = request.grown
    if arm is not None and arm not in study.arms:
        arms = named(arm, study.arms)
        raise RefusedError(f"study {study.name} has no arm {arm!r}; its arms are {arms}")
    found = [
        result for result in request.results()
        if arm in {None, result.run.arm} and seed in {None, result.run.seed}
    ]  # fmt: skip
    if not found:
        seeds = spell_seeds(study.seeds_of(arm or study.baseline))
        reason = _pruned(request, arm) if arm is not None and seed in study.seeds else ""
        more = f"; {reason}" if reason else ""
        raise RefusedError(f"study {study.name} has no seed {seed}; it has {seeds}{more}")
    return found


def _pruned(request: Request, arm: str) -> str:
    """Return a sentence on why a point of a search was not trained at all seeds; "" if it was."""
    study = request.grown
    if arm not in {point.arm for point in request.history.points if point.state == "pruned"}:
        return ""
    own = len(study.seeds_of(arm))
    return (
        f"{arm}: pruned by the search after {own} of {len(study.seeds)} seeds, because it was "
        "clearly worse than the best point"
    )


def _trainers(request: Request, launched: Sequence[Launch]) -> Mapping[str, str]:
    """Return `STUDY: ARM seed SEED` for each run that was launched in the store, by run key."""
    named = {
        key: f"{launch.study}: {arm} seed {seed}"
        for launch in launched for key, seed, arm in _launched_runs(launch)
    }  # fmt: skip
    study = request.grown
    return named | {run.key: f"{study.name}: {run.arm} seed {run.seed}" for run in study.runs()}


def _others(request: Request, launched: Sequence[Launch]) -> Mapping[str, str]:
    """Return `, which is also ...` for each run that other studies launched too, by run key."""
    named: dict[str, dict[str, None]] = {}
    for launch in launched:
        if launch.study != request.grown.name:
            for key, seed, arm in _launched_runs(launch):
                named.setdefault(key, {})[f"{launch.study}: {arm} seed {seed}"] = None
    return {key: f", which is also {' and '.join(names)}," for key, names in named.items()}


def _launched_runs(launch: Launch) -> Iterator[list[str]]:
    """Yield the run key, seed and arm of each run of a launch."""
    return (text.split(" ", 2) for text in launch.runs)


def _outcome(result: RunResult, ended: str | None, request: Request) -> Iterator[str]:
    run, failure = result.run, result.failure
    name = f"{run.arm} seed {run.seed}"
    epochs = f"{len(result.records)} of {run.config.epochs} epochs are stored"
    match result.outcome:
        case "complete":
            yield f"{name}: finished, {epochs}"
        case "diverged":
            yield f"{name}: diverged, {epochs}: {failure.message if failure else ''}"
            yield f"  again     {request.spell('run')} --again"
        case "failed":
            why = ""
            if failure is not None:
                plural = "" if failure.attempts == 1 else "s"
                why = f" after {failure.attempts} attempt{plural}: {failure.message}"
            yield f"{name}: failed{why}; {epochs}"
        case _ if ended is not None:
            yield f"{name}: not begun, because the study {ended}"
        case _:
            yield f"{name}: not finished, {epochs}"
    yield f"  run       {run.key}"
    if run.teacher is not None:
        yield f"  teacher   {run_key(run.teacher)}"


def _stages(
    result: RunResult,
    store: Store,
    stored: Mapping[str, bool],
    trainers: Mapping[str, str],
    others: str,
) -> Iterator[str]:
    """Yield lines that say which runs trained the stored epochs of a run."""
    keys = stage_keys(result.run.config)
    first = 1
    stages = [stage for key in keys if key in stored and (stage := store.read(key)) is not None]
    for place, stage in enumerate(stages, 1):
        following = stages[place] if place < len(stages) else None
        if following is not None and _origin(stage) == _origin(following):
            continue
        epochs = _spell_epochs(first, stage.epochs)
        by = _trainer(stage)
        own = f"this run{others}"
        who = own if by == result.run.key else trainers.get(by, f"run {by}" if by else "")
        host = stage.environment.get("host", "")
        at = stage.facts[-1].stored_at_ms / 1000
        when = datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
        told = [f"trained by {who or 'an unknown run'}", *([f"on {host}"] if host else [])]
        addition = Addition.of(stage)
        says = "" if addition is None else "the archive says: "
        yield f"  {epochs:<9} stage {stage.key}, {says}{' '.join(told)}, stored {when}"
        if addition is not None:
            on = f"{datetime.fromtimestamp(addition.at_ms / 1000).astimezone():%Y-%m-%d %H:%M}"
            which = f"from an archive (sha256 {addition.archive[:12]})"
            yield f"  added     {which}, {on}, by {addition.by}"
        first = stage.epochs + 1


def _spell_epochs(first: int, last: int) -> str:
    return f"epoch {first}" if first == last else f"epochs {first}-{last}"


def _origin(stage: Stage) -> tuple[str, Addition | None]:
    return _trainer(stage), Addition.of(stage)


def _trainer(stage: Stage) -> str:
    return trained_by(stage)[0]


def _next(
    result: RunResult,
    planned: PlannedRun | None,
    trainers: Mapping[str, str],
    *,
    is_left_out: bool,
) -> Iterator[str]:
    if planned is None or is_left_out:
        return
    last, first, stored = planned.run.config.epochs, planned.first_epoch + 1, len(result.records)
    yield f"  next      `mixsweep run` trains {_spell_epochs(first, last)}"
    if first <= stored:
        again = _spell_epochs(first, stored)
        yield f"  again     {again}, because the store has no state after epoch {stored}"
    for need in planned.needs:
        shared = f"trains the same {_spell_epochs(1, need.epoch)}"
        what = "the teacher of this run" if need.use == "teacher" else shared
        yield f"  waits for {trainers.get(need.run, need.run)}: {what}"


def _epochs(result: RunResult, metrics: Sequence[str]) -> Iterator[str]:
    for record, facts in zip(result.records, result.facts, strict=True):
        at = datetime.fromtimestamp(facts.stored_at_ms / 1000).astimezone()
        found = [f"{m} {record.metrics[m]:.4f}" for m in metrics if m in record.metrics]
        head = f"  {at:%Y-%m-%d %H:%M:%S}  epoch {record.epoch + 1:<4} {facts.seconds:7.1f} s"
        yield "  ".join((head, *found))


def _trace(result: RunResult) -> Sequence[str]:
    failure = result.failure
    return () if failure is None or result.outcome == "complete" else failure.trace.splitlines()
