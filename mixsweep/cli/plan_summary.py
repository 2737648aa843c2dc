"""Plan summary: the output of `mixsweep plan`, as a JSON value or as text."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, assert_never

from mixsweep.cli.claim_power import (
    claim_powers,
    foresee_looks,
    spell_powers,
    tell_looks,
)
from mixsweep.launching.costs import (
    bytes_of_data,
    bytes_of_predictions,
    bytes_to_keep,
    most_bytes_of_a_run,
    seconds_to_train,
    used_gpus,
    work_to_train,
)
from mixup_core.rules import printable
from mixup_core.store.checkpoints import Store
from sweeps.machine.terminal_text import arm_table
from sweeps.running.progress import spell_duration
from sweeps.searching.selection import foreseen_study
from sweeps.state.results import (
    RunResult,
    added_runs,
    ended_on_budget,
    read_results,
    sound_stages,
)
from sweeps.state.stages import Plan, plan_study, spare_bytes
from sweeps.study.budget import SECONDS_PER_HOUR, UNITS
from sweeps.study.search import Search, SearchHistory, confirming
from sweeps.study.space import Categorical, Distribution, Integer, Real
from sweeps.study.study import Study


def plan_summary(  # noqa: PLR0913  a study, its places, and what an hour is
    study: Study,
    history: SearchHistory,
    store: Store,
    slots: int,
    *,
    gpus_per_run: float | None = None,
    price: float | None = None,
) -> dict[str, Any]:
    """Return a dict with the runs that `mixsweep run` would train and their cost.

    `mixsweep plan --json` prints it. `epochs_planned` counts the epochs that are neither stored nor
    shared with another run. Values not measured yet are None, and so is `cost` without a price.
    """
    if study.search is not None and history.asks(study.search):
        study = foreseen_study(study)
    results = read_results(study.runs(), store)
    planned = plan_study(study, store, sound=sound_stages(results))
    stored = Counter(run.arm for run in planned.finished)
    to_run = Counter(pending.run.arm for pending in planned.pending)
    summary = {
        "study": study.name,
        "plugins": list(study.plugins),
        "runs": len(results),
        "stored": len(planned.finished),
        "to_run": len(planned.pending),
        "added": added_runs(results),
        "epochs_naive": sum(result.run.config.epochs for result in results),
        "epochs_planned": planned.epochs_planned,
        "arms": {
            arm: {"runs": len(study.seeds_of(arm)), "stored": stored[arm], "to_run": to_run[arm]}
            for arm in study.arms
        },
        "slots": slots,
        "seconds": seconds_to_train(planned, results, slots),
        "kept_bytes": bytes_to_keep(planned, results),
        "prediction_bytes": bytes_of_predictions(p.run.config for p in planned.pending),
        "last_state_bytes": len(planned.pending) * spare_bytes(len(results)),
        "memory_bytes": bytes_of_data(study),
        "run_bytes": most_bytes_of_a_run(study),
        "codes": dict(study.codes),
        "remarks": list(study.remarks()),
        "claims": (powers := claim_powers(study, results)),
        "claims_decide": spell_powers(study, powers),
        "diverged": [
            {"arm": result.run.arm, "seed": result.run.seed, "message": result.failure.message}
            for result in results
            if result.outcome == "diverged" and result.failure is not None
        ],
    }
    work = work_to_train(planned, results)
    busy = None if work is None else sum(work)
    if study.search is not None:
        most = _at_most(summary, study, study.search, planned, results, history)
        if busy is not None and most["seconds"] is not None:
            busy += (most["seconds"] - (summary["seconds"] or 0.0)) * slots
        summary |= most
    elif limits := study.budget.limits:
        summary |= {"budget": {**limits, "ended": ended_on_budget(study, results)}}
    if gpus_per_run is None and used_gpus(results):
        gpus_per_run = 1.0
    hours = None if busy is None else busy / SECONDS_PER_HOUR * (gpus_per_run or 1.0)
    if study.until is not None:
        summary["looks"] = foresee_looks(study, store, slots, gpus_per_run, price)
    return summary | {
        "gpu_hours": hours if gpus_per_run else None,
        "cost": None if price is None or hours is None else hours * price,
    }


def _at_most(  # noqa: PLR0913  two of them are parts of the others, at hand
    summary: dict[str, Any],
    study: Study,
    search: Search,
    planned: Plan,
    results: Sequence[RunResult],
    history: SearchHistory,
) -> dict[str, Any]:
    """Return the numbers of `plan` for a search that proposes all its points: the highest cost."""
    num_proposed, asks = len(history.points), history.asks(search)
    to_ask = search.points - num_proposed if asks and search.strategy.sampler != "grid" else 0
    corners = [search.config_of(values) for values in search.space.corners()]
    longest = max(config.epochs for config in corners)
    fixed = [study.arms[arm] for arm in study.fixed]
    arm_epochs = [config.epochs for config in fixed]
    is_open = asks or any(point.state == "open" for point in history.points)
    confirms = is_open and study.confirmation() is None
    confirm_epochs = [*arm_epochs, longest] * len(search.strategy.confirm_seeds) if confirms else []
    runs = to_ask * len(study.seeds)
    point_bytes = max(bytes_of_predictions([config]) for config in corners)
    revealed = [confirming(config) for config in (*fixed, max(corners, key=lambda c: c.epochs))]
    predicted = runs * point_bytes
    if confirms:
        predicted += len(search.strategy.confirm_seeds) * bytes_of_predictions(revealed)
    epochs = runs * longest + sum(confirm_epochs)
    states = runs * max(len(search.fork_epochs(values)) for values in search.space.corners())
    seconds = [facts.seconds for result in results for facts in result.facts]
    more_seconds = epochs * median(seconds) / summary["slots"] if seconds else None
    return {
        "runs": summary["runs"] + runs + len(confirm_epochs),
        "to_run": summary["to_run"] + runs + len(confirm_epochs),
        "epochs_naive": summary["epochs_naive"] + epochs,
        "epochs_planned": summary["epochs_planned"] + epochs,
        "seconds": None if more_seconds is None else (summary["seconds"] or 0.0) + more_seconds,
        "kept_bytes": bytes_to_keep(planned, results, states),
        "prediction_bytes": summary["prediction_bytes"] + predicted,
        "search": {
            "adaptive": search.strategy.sampler != "grid",
            "points": len(study.points()) + to_ask,
            "points_known": num_proposed,
            "runs_to_ask": runs + (len(study.points()) - num_proposed) * len(study.seeds),
            "runs_to_confirm": len(confirm_epochs),
            "budget": search.budget.limits,
            "space": [
                {"path": p.path, **_spell_distribution(p.distribution)}
                for p in search.space.parameters
            ],
        },
    }


def _spell_distribution(distribution: Distribution) -> dict[str, Any]:
    match distribution:
        case Real(low=low, high=high, is_log=is_log):
            return {"kind": "log_uniform" if is_log else "uniform", "low": low, "high": high}
        case Integer(low=low, high=high, step=step):
            return {"kind": "int", "low": low, "high": high, "step": step}
        case Categorical(choices=choices):
            return {"kind": "categorical", "choices": list(choices)}
        case _:
            assert_never(distribution)


def spell_plan(summary: dict[str, Any], size: os.terminal_size | None = None) -> str:
    """Return the runs to train and their cost (from `plan_summary`) as text for the console."""
    search, looks, diverged = summary.get("search"), summary.get("looks"), summary["diverged"]
    is_at_least = looks is not None and looks["open"] and "budget" not in summary
    is_at_most = search is not None or "budget" in summary
    most = "at least " if is_at_least else "at most " if is_at_most else ""
    time, seconds = "not known before a first run", summary["seconds"]
    if seconds is not None:
        time = f"about {spell_duration(seconds)} on {summary['slots']} slots, from measured epochs"
    epochs, naive = summary["epochs_planned"], summary["epochs_naive"]
    rows = {
        arm: f"{row['runs']:>4}  {row['stored']:>6}  {row['to_run']:>6}"
        for arm, row in summary["arms"].items()
    }
    sections = {
        "added": [summary["added"]],
        **({} if search is None else _tell_search(search)),
        "budget": [_spell_budget(summary.get("budget"))],
        **({} if looks is None else tell_looks(looks, summary["slots"])),
        "epochs": [f"{most}{epochs} to train, of {most}{naive} in all runs"],
        "time": [time],
        **_tell_money(summary, "" if search is None else "at most "),
        "disk": [", ".join(_disk(summary, most))],
        "memory": ["; ".join(_memory_needs(summary))],
        "diverged": [f"{run['arm']} seed {run['seed']}: {run['message']}" for run in diverged],
        "again": ["`mixsweep run --again` trains diverged runs again" if diverged else ""],
        "name": [f"{c} stands for {printable(text)}" for c, text in summary["codes"].items()],
        "code": [f"{file} is run: the study file names it" for file in summary["plugins"]],
        "data": summary["remarks"],
        "claim": summary["claims_decide"],
    }
    return "\n".join([
        f"{summary['study']}: {most}{summary['runs']} runs, {summary['stored']} stored, "
        + (f"{len(diverged)} diverged, " if diverged else "")
        + f"{summary['to_run']} to run",
        *arm_table("runs  stored  to run", rows, size,
                   [arm for arm, row in summary["arms"].items() if row["to_run"]]),
        *(f"{label:<10}{text}" for label, texts in sections.items() for text in texts if text),
    ])  # fmt: skip


def _disk(summary: dict[str, Any], most: str) -> Iterator[str]:
    predicted, last, kept = (
        summary[f"{name}_bytes"] for name in ("prediction", "last_state", "kept")
    )
    yield "records"
    if predicted:
        amount = f"{most}{predicted / 1e6:.1f}" if predicted >= 5e4 else "less than 0.1"
        yield f"{amount} MB of predictions"
    if last:
        yield f"at most {last / 1e6:.0f} MB of last states (longer runs continue from them)"
    if kept is None:
        yield "states whose size is not known before a first run"
    elif kept:
        yield f"{most}{kept / 1e6:.1f} MB of states"


def _memory_needs(summary: dict[str, Any]) -> Iterator[str]:
    if most := summary["run_bytes"]:
        yield f"at most {most / 1e9:.1f} GB per run, computed from its images and batch size"
        free = summary.get("free_bytes")
        if free is not None and free < most * summary["slots"]:
            surely = f", surely enough for {free // most} at a time" if free >= most else ""
            yield f"{free / 1e9:.1f} GB are free{surely}; most runs need far less"
    for name, size in summary["memory_bytes"].items():
        yield f"{size / 1e6:.1f} MB of {name} once per machine"


def _spell_budget(budget: dict[str, Any] | None) -> str:
    if budget is None:
        return ""
    if budget["ended"]:
        return f"the study {budget['ended']}"
    return f"no new seed after {_spell_limits(budget)}"


def _spell_limits(budget: dict[str, Any]) -> str:
    limits = (f"{limit:g} {UNITS[name]}" for name, limit in budget.items() if name in UNITS)
    return " or ".join(limits)


def _tell_money(summary: dict[str, Any], most: str) -> dict[str, list[str]]:
    hours, cost = summary["gpu_hours"], summary["cost"]
    return {
        "GPUs": [] if hours is None else [f"{most}{hours:.2f} GPU-hours of training"],
        "cost": [] if cost is None else [f"{most}{cost:.2f}, without start-up"],
    }


def _tell_search(search: dict[str, Any]) -> dict[str, list[str]]:
    space = (
        f"{part['path']} {part['kind']} "
        + (
            ", ".join(map(str, part["choices"]))
            if part["kind"] == "categorical"
            else f"{part['low']:g}..{part['high']:g}"
        )
        for part in search["space"]
    )
    kind = "adaptive: later points depend on results" if search["adaptive"] else "the whole grid"
    limits = _spell_limits(search["budget"])
    ends = f"; no new ones after {limits}" if limits else ""
    to_ask, to_confirm = search["runs_to_ask"], search["runs_to_confirm"]
    return {
        "points": [f"{search['points']} ({kind}), {search['points_known']} known{ends}"],
        "space": ["; ".join(space)],
        "to train": [f"{to_ask} runs of points, {to_confirm} to confirm"],
    }
