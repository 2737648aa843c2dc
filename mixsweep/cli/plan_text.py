"""Plan text: the output of `mixsweep plan` for people."""

import os
from collections.abc import Iterator, Mapping

from mixsweep.cli.looks_cost import spell_looks
from mixsweep.cli.plan_summary import PlanSummary, SearchPlan, SeedBudget, distribution_value
from mixup_core.rules import printable
from sweeps.machine.terminal_text import arm_table
from sweeps.running.progress import spell_duration
from sweeps.study.budget import UNITS
from sweeps.study.space import Parameter


def spell_plan(plan: PlanSummary, size: os.terminal_size | None = None) -> str:
    """Return the runs to train and their cost as text for the console."""
    is_at_least = plan.looks is not None and plan.looks.open
    is_at_most = plan.search is not None or plan.budget is not None
    most = "at least " if is_at_least else "at most " if is_at_most else ""
    diverged = f"{len(plan.diverged)} diverged, " if plan.diverged else ""
    rows = {
        arm: f"{row.runs:>4}  {row.stored:>6}  {row.to_run:>6}" for arm, row in plan.arms.items()
    }
    first = [arm for arm, row in plan.arms.items() if row.to_run]
    return "\n".join([
        f"{plan.study}: {most}{plan.runs} runs, {plan.stored} stored, "
        f"{diverged}{plan.to_run} to run",
        *arm_table("runs  stored  to run", rows, size, first),
        *(f"{label:<10}{text}" for label, text in _sections(plan, most) if text),
    ])  # fmt: skip


def _sections(plan: PlanSummary, most: str) -> Iterator[tuple[str, str]]:
    """Yield the lines below the table, each as a label and a text, which may be empty.

    `most` is put before numbers that may turn out different, such as `at most `.
    """
    yield "added", plan.added
    if plan.search is not None:
        yield from _search_lines(plan.search)
    if plan.budget is not None:
        yield "budget", _spell_budget(plan.budget)
    if plan.looks is not None:
        yield from spell_looks(plan.looks, plan.slots)
    yield from _costs(plan, most)
    yield from _notes(plan)


def _costs(plan: PlanSummary, most: str) -> Iterator[tuple[str, str]]:
    epochs = f"{most}{plan.epochs_planned} to train, of {most}{plan.epochs_naive} in all runs"
    yield "epochs", epochs
    if plan.seconds is None:
        yield "time", "not known before a first run"
    else:
        duration = spell_duration(plan.seconds)
        yield "time", f"about {duration} on {plan.slots} slots, from measured epochs"
    limit = "" if plan.search is None else "at most "
    if plan.gpu_hours is not None:
        yield "GPUs", f"{limit}{plan.gpu_hours:.2f} GPU-hours of training"
    if plan.cost is not None:
        yield "cost", f"{limit}{plan.cost:.2f}, without start-up"
    yield "disk", ", ".join(_disk_needs(plan, most))
    yield "memory", "; ".join(_memory_needs(plan))


def _notes(plan: PlanSummary) -> Iterator[tuple[str, str]]:
    for run in plan.diverged:
        yield "diverged", f"{run.arm} seed {run.seed}: {run.message}"
    if plan.diverged:
        yield "again", "`mixsweep run --again` trains diverged runs again"
    for code, text in plan.codes.items():
        yield "name", f"{code} stands for {printable(text)}"
    for file in plan.plugins:
        yield "code", f"{file} is run: the study file names it"
    for remark in plan.remarks:
        yield "data", remark
    for claim in plan.claims_decide:
        yield "claim", claim


def _disk_needs(plan: PlanSummary, most: str) -> Iterator[str]:
    yield "records"
    if predicted := plan.prediction_bytes:
        amount = f"{most}{predicted / 1e6:.1f}" if predicted >= 5e4 else "less than 0.1"
        yield f"{amount} MB of predictions"
    if last := plan.last_state_bytes:
        yield f"at most {last / 1e6:.0f} MB of last states (longer runs continue from them)"
    if plan.kept_bytes is None:
        yield "states whose size is not known before a first run"
    elif plan.kept_bytes:
        yield f"{most}{plan.kept_bytes / 1e6:.1f} MB of states"


def _memory_needs(plan: PlanSummary) -> Iterator[str]:
    if most := plan.run_bytes:
        yield f"at most {most / 1e9:.1f} GB per run, computed from its images and batch size"
        free = plan.free_bytes
        if free is not None and free < most * plan.slots:
            surely = f", surely enough for {free // most} at a time" if free >= most else ""
            yield f"{free / 1e9:.1f} GB are free{surely}; most runs need far less"
    for name, size in plan.memory_bytes.items():
        yield f"{size / 1e6:.1f} MB of {name} once per machine"


def _spell_budget(budget: SeedBudget) -> str:
    if budget.ended is not None:
        return f"the study {budget.ended}"
    return f"no new seed after {_spell_limits(budget.limits)}"


def _spell_limits(limits: Mapping[str, float]) -> str:
    return " or ".join(f"{limit:g} {UNITS[name]}" for name, limit in limits.items())


def _search_lines(search: SearchPlan) -> Iterator[tuple[str, str]]:
    kind = "adaptive: later points depend on results" if search.adaptive else "the whole grid"
    limits = _spell_limits(search.budget)
    ends = f"; no new ones after {limits}" if limits else ""
    yield "points", f"{search.points} ({kind}), {search.points_known} known{ends}"
    yield "space", "; ".join(map(_spell_parameter, search.space))
    to_ask, to_confirm = search.runs_to_ask, search.runs_to_confirm
    yield "to train", f"{to_ask} runs of points, {to_confirm} to confirm"


def _spell_parameter(parameter: Parameter) -> str:
    shown = distribution_value(parameter.distribution)
    if shown["kind"] == "categorical":
        values = ", ".join(map(str, shown["choices"]))
    else:
        values = f"{shown['low']:g}..{shown['high']:g}"
    return f"{parameter.path} {shown['kind']} {values}"
