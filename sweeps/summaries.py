"""What `plan` and `status` say of a study: as values for machines, and spelled for people."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mixup_core.checkpoints import Store
from sweeps.console import spell_duration
from sweeps.costs import bytes_to_keep, seconds_to_train
from sweeps.lease import Lease, read_progress
from sweeps.results import RunResult, read_results
from sweeps.stages import plan_study
from sweeps.study import Study


def plan_summary(study: Study, store: Store, slots: int) -> dict[str, Any]:
    """Return what a launch would train and cost, as `plan --json` prints it.

    `epochs_naive` counts every run of the study on its own; `epochs_planned` what a launch trains
    now. `seconds` and `kept_bytes` are None where nothing was measured yet.
    """
    planned = plan_study(study, store)
    results = read_results(study.runs(), store)
    stored = Counter(run.arm for run in planned.finished)
    to_run = Counter(pending.run.arm for pending in planned.pending)
    return {
        "study": study.name,
        "runs": len(results),
        "stored": len(planned.finished),
        "to_run": len(planned.pending),
        "epochs_naive": sum(result.run.config.epochs for result in results),
        "epochs_planned": planned.epochs_planned,
        "arms": {
            arm: {"runs": len(study.seeds), "stored": stored[arm], "to_run": to_run[arm]}
            for arm in study.arms
        },
        "slots": slots,
        "seconds": seconds_to_train(planned, results, slots),
        "kept_bytes": bytes_to_keep(planned, results),
    }


def spell_plan(summary: dict[str, Any]) -> str:
    """Return a plan summary as lines for people."""
    naive, planned = summary["epochs_naive"], summary["epochs_planned"]
    seconds, kept = summary["seconds"], summary["kept_bytes"]
    time = "not known before a first run"
    if seconds is not None:
        time = f"about {spell_duration(seconds)} on {summary['slots']} slots, from measured epochs"
    disk = "records only"
    if kept != 0:
        disk = "not known before a first run" if kept is None else f"{kept / 1e6:.1f} MB of states"
    width = max(len(arm) for arm in ("arm", *summary["arms"]))
    return "\n".join(
        [
            f"{summary['study']}: {summary['runs']} runs, {summary['stored']} stored, "
            f"{summary['to_run']} to run",
            f"{'arm':<{width}}  runs  stored  to run",
            *(
                f"{arm:<{width}}  {row['runs']:>4}  {row['stored']:>6}  {row['to_run']:>6}"
                for arm, row in summary["arms"].items()
            ),
            f"epochs    {naive} naive, {planned} to train",
            f"time      {time}",
            f"disk      {disk}",
        ]
    )


def status_summary(study: Study, store: Store) -> dict[str, Any]:
    """Return how far a study is, as `status --json` prints it."""
    results = read_results(study.runs(), store)
    progress = read_progress(store, study.name)
    running = {(run.arm, run.seed): run for run in progress.running} if progress else {}
    arms = {
        arm: {
            "expected": len(study.seeds),
            "finished": sum(result.outcome == "complete" for result in of_arm),
            "running": sum((arm, result.run.seed) in running for result in of_arm),
            "failed": sum(result.outcome in {"failed", "diverged"} for result in of_arm),
        }
        for arm, of_arm in _by_arm(results).items()
    }
    holder = Lease.current(store, study.name)
    planned = plan_study(study, store)
    return {
        "study": study.name,
        "driver": None if holder is None else {"pid": holder.pid, "host": holder.host},
        "arms": arms,
        "epochs": {
            "done": sum(len(result.records) for result in results),
            "expected": sum(result.run.config.epochs for result in results),
        },
        "running": [
            {"arm": run.arm, "seed": run.seed, "epoch": run.epoch} for run in running.values()
        ],
        "failures": [
            {"arm": result.run.arm, "seed": result.run.seed, "message": result.failure.message}
            for result in results
            if result.failure is not None and result.outcome != "complete"
        ],
        "seconds_left": seconds_to_train(planned, results, max(1, len(running))),
    }


def spell_status(summary: dict[str, Any]) -> str:
    """Return a status summary as lines for people."""
    width = max(len(arm) for arm in ("arm", *summary["arms"]))
    driver, epochs, left = summary["driver"], summary["epochs"], summary["seconds_left"]
    lines = [
        f"{summary['study']}: "
        + (f"driven by pid {driver['pid']} on {driver['host']}" if driver else "not running"),
        f"{'arm':<{width}}  done   running  failed",
        *(
            f"{arm:<{width}}  {row['finished']}/{row['expected']:<4} {row['running']:>7} "
            f"{row['failed']:>7}"
            for arm, row in summary["arms"].items()
        ),
        f"epochs    {epochs['done']} of {epochs['expected']} stored",
    ]
    lines += [
        f"running   {run['arm']} seed {run['seed']}, epoch {run['epoch']}"
        for run in summary["running"]
    ]
    lines += [
        f"failed    {failure['arm']} seed {failure['seed']}: {failure['message']}"
        for failure in summary["failures"]
    ]
    if driver and left:
        lines.append(f"ETA       {spell_duration(left)}")
    return "\n".join(lines)


def _by_arm(results: Sequence[RunResult]) -> dict[str, list[RunResult]]:
    arms: dict[str, list[RunResult]] = {}
    for result in results:
        arms.setdefault(result.run.arm, []).append(result)
    return arms
