"""Estimate the seconds and bytes of a launch from earlier measurements."""

from collections.abc import Iterable, Sequence
from statistics import median

from mixup_core.problem import Config, problem_of
from sweeps.state.results import RunResult
from sweeps.state.stages import Plan


def work_to_train(plan: Plan, results: Sequence[RunResult]) -> tuple[float, ...] | None:
    """Return the seconds of each run of a plan, from the epochs that this study has stored.

    An arm without a measured epoch is taken to cost what the others do; start-up is left out.

    Args:
        plan: What is to be trained.
        results: Results of the same study.

    Returns:
        None if no epoch of the study was measured yet.
    """
    by_arm: dict[str, list[float]] = {}
    for result in results:
        by_arm.setdefault(result.run.arm, []).extend(facts.seconds for facts in result.facts)
    typical = {arm: median(seconds) for arm, seconds in by_arm.items() if seconds}
    if not typical:
        return None
    anywhere = median(typical.values())
    return tuple(p.epochs_to_train * typical.get(p.run.arm, anywhere) for p in plan.pending)


def seconds_to_train(plan: Plan, results: Sequence[RunResult], slots: int) -> float | None:
    """Return the wall seconds of a plan (`work_to_train`).

    Args:
        plan: What is to be trained.
        results: Results of the same study.
        slots: Runs trained side by side.
    """
    work = work_to_train(plan, results)
    return None if work is None else max(sum(work) / slots, max(work, default=0.0))


def used_gpus(results: Iterable[RunResult]) -> bool:
    """Return whether any of some runs was trained on a GPU."""
    stages = [result.stage for result in results if result.stage is not None]
    return any(stage.environment.get("gpus") for stage in stages)


def bytes_of_predictions(configs: Iterable[Config]) -> int:
    """Return the bytes of the predictions that some runs leave when they finish."""
    return sum(problem_of(config).cost.prediction_bytes(config) for config in configs)


def bytes_to_keep(plan: Plan, results: Iterable[RunResult], more_states: int = 0) -> int | None:
    """Return the bytes of the states that forks make a plan keep; 0 without forks.

    Args:
        plan: What is to be trained.
        results: Results of the same study.
        more_states: States that runs which are not planned yet may have to keep.

    Returns:
        None if there are such states and none of this study's was measured yet.
    """
    num_states = more_states + sum(
        epoch > planned.first_epoch for planned in plan.pending for epoch in planned.keep
    )
    sizes = [
        result.stage.state.size
        for result in results
        if result.stage is not None and result.stage.state is not None
    ]
    if num_states and not sizes:
        return None
    return num_states * max(sizes, default=0)
