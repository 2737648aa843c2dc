"""Plan summary: the output of `mixsweep plan`, as a JSON value or as text."""

import os
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any, assert_never

from mixsweep.cli.claim_power import (
    add_hours,
    claim_powers,
    foresee_looks,
    spell_looks,
    spell_powers,
)
from mixsweep.launching.costs import (
    bytes_of_predictions,
    bytes_to_keep,
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

    `mixsweep plan --json` prints it. `epochs_naive` counts every epoch of every run;
    `epochs_planned` only the epochs to train, which are neither stored nor shared with another run.
    `seconds`, `gpu_hours`, `cost` and `kept_bytes` (size of the states that are kept for other
    runs) are None before a first measurement; `gpu_hours` also if runs use no GPU, and `cost`
    without a price. `prediction_bytes` is the size of the predictions of the runs to train.
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
        "memory_bytes": _memory(study),
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
        looks = foresee_looks(study, store, slots)
        add_hours(looks, slots, gpus_per_run, price)
        summary["looks"] = looks
    return summary | {
        "gpu_hours": hours if gpus_per_run else None,
        "cost": None if price is None or hours is None else hours * price,
    }


def _memory(study: Study) -> dict[str, int]:
    """Return the bytes that each dataset needs in memory, by name: the largest of all arms."""
    sizes: dict[str, int] = {}
    for config in study.arms.values():
        for name, size in study.problem.cost.memory(config).items():
            sizes[name] = max(size, sizes.get(name, 0))
    return sizes


def _at_most(  # noqa: PLR0913  two of them are parts of the others, at hand
    summary: dict[str, Any],
    study: Study,
    search: Search,
    planned: Plan,
    results: Sequence[RunResult],
    history: SearchHistory,
) -> dict[str, Any]:
    """Return the numbers of `plan` for a search that proposes all its points: the highest cost."""
    asked, asks = len(history.points), history.asks(search)
    to_ask = search.points - asked if asks and search.strategy.sampler != "grid" else 0
    corners = [search.config_of(values) for values in search.space.corners()]
    longest = max(config.epochs for config in corners)
    own = [study.arms[arm] for arm in study.fixed]
    arms = [config.epochs for config in own]
    is_open = asks or any(point.state == "open" for point in history.points)
    confirms = is_open and study.confirmation() is None
    confirmed = [*arms, longest] * len(search.strategy.confirm_seeds) if confirms else []
    runs = to_ask * len(study.seeds)
    searched = max(bytes_of_predictions([config]) for config in corners)
    revealed = [confirming(config) for config in (*own, max(corners, key=lambda c: c.epochs))]
    predicted = runs * searched
    if confirms:
        predicted += len(search.strategy.confirm_seeds) * bytes_of_predictions(revealed)
    epochs = runs * longest + sum(confirmed)
    states = runs * max(len(search.fork_epochs(values)) for values in search.space.corners())
    seconds = [facts.seconds for result in results for facts in result.facts]
    more = epochs * median(seconds) / summary["slots"] if seconds else None
    return {
        "runs": summary["runs"] + runs + len(confirmed),
        "to_run": summary["to_run"] + runs + len(confirmed),
        "epochs_naive": summary["epochs_naive"] + epochs,
        "epochs_planned": summary["epochs_planned"] + epochs,
        "seconds": None if more is None else (summary["seconds"] or 0.0) + more,
        "kept_bytes": bytes_to_keep(planned, results, states),
        "prediction_bytes": summary["prediction_bytes"] + predicted,
        "search": {
            "adaptive": search.strategy.sampler != "grid",
            "points": len(study.points()) + to_ask,
            "points_known": asked,
            "runs_to_ask": runs + (len(study.points()) - asked) * len(study.seeds),
            "runs_to_confirm": len(confirmed),
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
    naive, planned = summary["epochs_naive"], summary["epochs_planned"]
    seconds, kept = summary["seconds"], summary["kept_bytes"]
    time = "not known before a first run"
    if seconds is not None:
        time = f"about {spell_duration(seconds)} on {summary['slots']} slots, from measured epochs"
    search = summary.get("search")
    lines = [] if search is None else _spell_search(search)
    most = "" if search is None else "at most "
    if "looks" in summary and summary["looks"]["open"]:
        most = "at least "
    if budget := summary.get("budget"):
        lines = [_spell_budget(budget)]
        most = "at most "
    predicted = summary["prediction_bytes"]
    disk = ["records"]
    if predicted:
        amount = f"{most}{predicted / 1e6:.1f}" if predicted >= 5e4 else "less than 0.1"
        disk.append(f"{amount} MB of predictions")
    if last := summary["last_state_bytes"]:
        disk.append(f"at most {last / 1e6:.0f} MB of last states (longer runs continue from them)")
    if kept is None:
        disk.append("states whose size is not known before a first run")
    elif kept:
        disk.append(f"{most}{kept / 1e6:.1f} MB of states")
    return "\n".join(
        [
            f"{summary['study']}: {most}{summary['runs']} runs, {summary['stored']} stored, "
            + (f"{len(summary['diverged'])} diverged, " if summary["diverged"] else "")
            + f"{summary['to_run']} to run",
            *arm_table(
                "runs  stored  to run",
                {
                    arm: f"{row['runs']:>4}  {row['stored']:>6}  {row['to_run']:>6}"
                    for arm, row in summary["arms"].items()
                },
                size,
                [arm for arm, row in summary["arms"].items() if row["to_run"]],
            ),
            *([f"added     {summary['added']}"] if summary["added"] else []),
            *lines,
            *(spell_looks(summary["looks"], summary["slots"]) if "looks" in summary else []),
            f"epochs    {most}{planned} to train, of {most}{naive} in all runs",
            f"time      {time}",
            *_spell_money(summary),
            f"disk      {', '.join(disk)}",
            *_spell_memory(summary),
            *(
                f"diverged  {run['arm']} seed {run['seed']}: {run['message']}"
                for run in summary["diverged"]
            ),
            *(
                ["again     `mixsweep run --again` trains diverged runs again"]
                if summary["diverged"]
                else []
            ),
            *(
                f"name      {code} stands for {printable(text)}"
                for code, text in summary["codes"].items()
            ),
            *(f"code      {file} is run: the study file names it" for file in summary["plugins"]),
            *(f"data      {remark}" for remark in summary["remarks"]),
            *(f"claim     {line}" for line in summary["claims_decide"]),
        ]
    )


def _spell_memory(summary: dict[str, Any]) -> list[str]:
    run = summary.get("run_memory")
    told = [] if run is None else [run["says"]]
    told += [
        f"{size / 1e6:.1f} MB of {name} once per machine"
        for name, size in summary["memory_bytes"].items()
    ]
    return [f"memory    {'; '.join(told)}"] if told else []


def _spell_budget(budget: dict[str, Any]) -> str:
    if budget["ended"]:
        return f"budget    the study {budget['ended']}"
    limits = [f"{limit:g} {UNITS[name]}" for name, limit in budget.items() if name in UNITS]
    return f"budget    no new seed after {' or '.join(limits)}"


def _spell_money(summary: dict[str, Any]) -> list[str]:
    hours, cost = summary["gpu_hours"], summary["cost"]
    most = "at most " if "search" in summary else ""
    lines = [] if hours is None else [f"GPUs      {most}{hours:.2f} GPU-hours of training"]
    return lines + ([] if cost is None else [f"cost      {most}{cost:.2f}, without start-up"])


def _spell_search(search: dict[str, Any]) -> list[str]:
    space = [
        f"{part['path']} {part['kind']} "
        + (
            ", ".join(map(str, part["choices"]))
            if part["kind"] == "categorical"
            else f"{part['low']:g}..{part['high']:g}"
        )
        for part in search["space"]
    ]
    kind = "adaptive: later points depend on results" if search["adaptive"] else "the whole grid"
    limits = [f"{limit:g} {UNITS[name]}" for name, limit in search["budget"].items()]
    ends = f"; no new ones after {' or '.join(limits)}" if limits else ""
    return [
        f"points    {search['points']} ({kind}), {search['points_known']} known{ends}",
        f"space     {'; '.join(space)}",
        f"to train  {search['runs_to_ask']} runs of points, {search['runs_to_confirm']} to confirm",
    ]
