"""Status summary: the output of `mixsweep status`, as a JSON value or as text."""

import os
from collections.abc import Sequence
from typing import Any

from mixsweep.launching.costs import seconds_to_train
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease, read_progress
from sweeps.machine.terminal_text import arm_table
from sweeps.running.progress import spell_duration, spell_within
from sweeps.state.results import RunResult, added_runs, read_results, sound_stages
from sweeps.state.stages import plan_study
from sweeps.study.study import Study


def status_summary(study: Study, store: Store) -> dict[str, Any]:
    """Return the progress of a study as a dict, which `mixsweep status --json` prints."""
    results = read_results(study.runs(), store)
    progress = read_progress(store, study.name)
    running = {(run.arm, run.seed): run for run in progress.running} if progress else {}
    arms = {
        arm: {
            "expected": len(of_arm),
            "finished": sum(result.outcome == "complete" for result in of_arm),
            "running": sum((arm, result.run.seed) in running for result in of_arm),
            "failed": sum(result.outcome in {"failed", "diverged"} for result in of_arm),
        }
        for arm, of_arm in _by_arm(results).items()
    }
    holder = Lease.current(store, study.name)
    cut = None if holder is not None else Lease.cut_off(store, study.name)
    left = None if progress is None else progress.seconds_left
    if left is None:  # not measured yet: estimated from stored epochs
        planned = plan_study(study, store, sound=sound_stages(results))
        left = seconds_to_train(planned, results, max(1, len(running)))
    points = [arms[arm] for arm in study.points()]
    searched = {} if study.search is None else {
        "points": {
            "expected": max(study.search.points, len(points)),
            "asked": len(points),
            "finished": sum(point["finished"] == point["expected"] for point in points),
        }
    }  # fmt: skip
    return {
        "study": study.name,
        **searched,
        "driver": None if holder is None else {"pid": holder.pid, "host": holder.host},
        "arms": arms,
        "epochs": {
            "done": sum(len(result.records) for result in results),
            "expected": sum(result.run.config.epochs for result in results),
        },
        "running": [
            {"arm": run.arm, "seed": run.seed, "epoch": run.epoch, "within": run.within}
            for run in running.values()
        ],
        "failures": [
            {"arm": result.run.arm, "seed": result.run.seed, "message": result.failure.message}
            for result in results
            if result.failure is not None and result.outcome != "complete"
        ],
        "added": added_runs(results),
        "seconds_left": left,
        "cut_off": None if cut is None else cut.spell_death(),
    }


def spell_status(summary: dict[str, Any], size: os.terminal_size | None = None) -> str:
    """Return the progress of a study (from `status_summary`) as text for the console."""
    driver, epochs, left = summary["driver"], summary["epochs"], summary["seconds_left"]
    lines = [
        f"{summary['study']}: "
        + (f"training, process {driver['pid']} on {driver['host']}" if driver else _idle(summary)),
        *arm_table(
            "done   running  waiting  failed",
            {
                arm: f"{row['finished']}/{row['expected']:<4} {row['running']:>7} "
                f"{_waiting(row):>8} {row['failed']:>7}"
                for arm, row in summary["arms"].items()
            },
            size,
            [arm for arm, row in summary["arms"].items() if row["running"] or row["failed"]],
        ),
        f"epochs    {epochs['done']} of {epochs['expected']} stored",
    ]
    if summary["added"]:
        lines.append(f"added     {summary['added']}")
    if "points" in summary:
        points = summary["points"]
        lines.append(
            f"points    {points['asked']} of {points['expected']} proposed, "
            f"{points['finished']} trained"
        )
    lines += [
        f"running   {run['arm']} seed {run['seed']}, epoch {run['epoch']}"
        + spell_within(run["within"])
        for run in summary["running"]
    ]
    lines += [
        f"failed    {failure['arm']} seed {failure['seed']}: {failure['message']}"
        for failure in summary["failures"]
    ]
    if summary["cut_off"]:
        lines.append(f"killed    {summary['cut_off']}")
    if driver and left:
        lines.append(f"ETA       {spell_duration(left)}")
    return "\n".join(lines)


def _waiting(row: dict[str, int]) -> int:
    return max(0, row["expected"] - row["finished"] - row["running"] - row["failed"])


def _idle(summary: dict[str, Any]) -> str:
    rows = summary["arms"].values()
    left = sum(map(_waiting, rows))
    if left:
        return f"not running; left to train: {left} (`mixsweep run`)"
    is_done = all(row["finished"] == row["expected"] for row in rows)
    return "not running; all runs are finished" if is_done else "not running; some runs failed"


def _by_arm(results: Sequence[RunResult]) -> dict[str, list[RunResult]]:
    arms: dict[str, list[RunResult]] = {}
    for result in results:
        arms.setdefault(result.run.arm, []).append(result)
    return arms
