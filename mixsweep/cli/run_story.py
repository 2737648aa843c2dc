"""Run story: which runs trained the stored epochs of a run, and why a run is missing."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import click

from mixsweep.request import RefusedError, Request
from mixup_core.keys import run_key, stage_keys
from mixup_core.rules import spell_time
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from sweeps.machine.terminal_text import fitted_text
from sweeps.reading.tree_reader import named
from sweeps.state.ledger import launches, was_last
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
    """Print where the results of an arm's runs come from, or why they were not trained."""
    study, results = request.grown, request.results()
    chosen = _chosen_results(request, results, arm, seed)
    plan = plan_study(study, request.store)
    planned = {pending.run.key: pending for pending in plan.pending}
    trainers, others = _launched_runs(request)
    stored = request.store.keys()
    ended = ended_on_budget(study, results)
    begun = begun_seeds(results)
    is_own = was_last(study, request.store)
    cut = Lease.cut_off(request.store, study.name) if is_own else None
    at_end = set() if cut is None else {(run.arm, run.seed) for run in cut.running}
    metrics = "train/loss", *study.problem.headline
    for result in chosen:
        is_left_out = ended is not None and result.run.seed not in begun
        is_cut = (result.run.arm, result.run.seed) in at_end
        for line in (
            *_outcome(result, ended if is_left_out else None, request),
            *(_epochs(result, metrics) if seed is not None else ()),
            *_stages(result, request.store, stored, trainers, others.get(result.run.key, "")),
            *_next(result, None if is_left_out else planned.get(result.run.key), trainers),
            *([f"  killed    {cut.spell_death()}"] if cut is not None and is_cut else []),
            *_trace(result),
        ):
            click.echo(fitted_text(line))
    if seed is None and (reason := _pruned(request, arm)):
        click.echo(fitted_text(reason))
    if any(result.outcome == "missing" for result in chosen):
        request.say_elsewhere()


def _chosen_results(
    request: Request, results: Sequence[RunResult], arm: str, seed: int | None
) -> list[RunResult]:
    """Return the results of all runs of one arm, or of an arm at one seed."""
    study = request.grown
    if arm not in study.arms:
        arms = named(arm, study.arms)
        raise RefusedError(f"study {study.name} has no arm {arm!r}; its arms are {arms}")
    chosen = [r for r in results if r.run.arm == arm and seed in {None, r.run.seed}]
    if not chosen:
        seeds = spell_seeds(study.seeds_of(arm))
        reason = _pruned(request, arm) if seed in study.seeds else ""
        more = f"; {reason}" if reason else ""
        raise RefusedError(f"study {study.name} has no seed {seed}; it has {seeds}{more}")
    return chosen


def _pruned(request: Request, arm: str) -> str:
    """Return a sentence on why a point of a search was not trained at all seeds; "" if it was."""
    study = request.grown
    if arm not in {point.arm for point in request.history.points if point.state == "pruned"}:
        return ""
    count = len(study.seeds_of(arm))
    return (
        f"{arm}: pruned by the search after {count} of {len(study.seeds)} seeds, because it was "
        "clearly worse than the best point"
    )


def _launched_runs(request: Request) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return, by run key, the name of each launched run, and its names in other studies."""
    study = request.grown
    trainers: dict[str, str] = {}
    others: dict[str, dict[str, None]] = {}
    for launch in launches(request.store):
        for key, seed, arm in (text.split(" ", 2) for text in launch.runs):
            trainers[key] = f"{launch.study}: {arm} seed {seed}"
            if launch.study != study.name:
                others.setdefault(key, {})[trainers[key]] = None
    own_names = {run.key: f"{study.name}: {run.arm} seed {run.seed}" for run in study.runs()}
    other_names = {key: f", which is also {' and '.join(names)}," for key, names in others.items()}
    return trainers | own_names, other_names


def _outcome(result: RunResult, ended: str | None, request: Request) -> Iterator[str]:
    """Yield lines that say how a run ended, or why it is missing, and which run it is."""
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
    keys = (key for key in stage_keys(result.run.config) if key in stored)
    stages = filter(None, map(store.read, keys))
    first = 1
    for (trainer, addition), group in groupby(stages, lambda s: (trained_by(s)[0], Addition.of(s))):
        *_, stage = group
        trainer_name = trainers.get(trainer, f"run {trainer}" if trainer else "an unknown run")
        who = f"this run{others}" if trainer == result.run.key else trainer_name
        host = stage.environment.get("host", "")
        preface = "" if addition is None else "the archive says: "
        text = f"{preface}trained by {who}{f' on {host}' if host else ''}"
        stored_at = spell_time(stage.facts[-1].stored_at_ms)
        epochs = _spell_epochs(first, stage.epochs)
        yield f"  {epochs:<9} stage {stage.key}, {text}, stored {stored_at}"
        if addition is not None:
            origin = f"from an archive (sha256 {addition.archive[:12]})"
            yield f"  added     {origin}, {spell_time(addition.at_ms)}, by {addition.by}"
        first = stage.epochs + 1


def _spell_epochs(first: int, last: int) -> str:
    return f"epoch {first}" if first == last else f"epochs {first}-{last}"


def _next(
    result: RunResult, planned: PlannedRun | None, trainers: Mapping[str, str]
) -> Iterator[str]:
    """Yield lines that say what the next launch trains of a run, and which runs it waits for."""
    if planned is None:
        return
    last, first, stored = planned.run.config.epochs, planned.first_epoch + 1, len(result.records)
    yield f"  next      `mixsweep run` trains {_spell_epochs(first, last)}"
    if first <= stored:
        again = _spell_epochs(first, stored)
        yield f"  again     {again}, because the store has no state after epoch {stored}"
    for need in planned.needs:
        shared = f"trains the same {_spell_epochs(1, need.epoch)}"
        reason = "the teacher of this run" if need.use == "teacher" else shared
        yield f"  waits for {trainers.get(need.run, need.run)}: {reason}"


def _epochs(result: RunResult, metrics: Sequence[str]) -> Iterator[str]:
    for record, facts in zip(result.records, result.facts, strict=True):
        stored_at = spell_time(facts.stored_at_ms, "%Y-%m-%d %H:%M:%S UTC")
        values = [f"{m} {record.metrics[m]:.4f}" for m in metrics if m in record.metrics]
        head = f"  {stored_at}  epoch {record.epoch + 1:<4} {facts.seconds:7.1f} s"
        yield "  ".join((head, *values))


def _trace(result: RunResult) -> Iterator[str]:
    if result.failure is not None and result.outcome != "complete":
        yield from (f"  {line}" for line in result.failure.trace.splitlines())
