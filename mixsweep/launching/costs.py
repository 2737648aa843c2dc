"""Costs: estimates of the seconds and bytes that runs will need, from earlier measurements."""

from collections.abc import Iterable, Sequence
from statistics import median

from mixup_core.problem import Config, problem_of
from sweeps.state.results import RunResult
from sweeps.state.stages import Plan


def work_to_train(plan: Plan, results: Sequence[RunResult]) -> tuple[float, ...] | None:
    """Estimate, for each single run that is still to train, the seconds that its training takes.

    The estimate uses the measured epochs of the same study. For an arm without a measured epoch it
    uses the median of the other arms. Start-up time is not included.
    """
    typical = _seconds_per_epoch(results)
    if not typical:
        return None
    anywhere = median(typical.values())
    return tuple(p.epochs_to_train * typical.get(p.run.arm, anywhere) for p in plan.pending)


def _seconds_per_epoch(results: Sequence[RunResult]) -> dict[str, float]:
    """Return the median of the measured seconds of an epoch, by arm that has any."""
    by_arm: dict[str, list[float]] = {}
    for result in results:
        by_arm.setdefault(result.run.arm, []).extend(facts.seconds for facts in result.facts)
    return {arm: median(seconds) for arm, seconds in by_arm.items() if seconds}


def seconds_of_all(results: Sequence[RunResult]) -> float | None:
    """Estimate the seconds that training all runs of a study takes, one after another.

    None before a first measured epoch. Arms without one count as the median of the others.
    """
    typical = _seconds_per_epoch(results)
    if not typical:
        return None
    anywhere = median(typical.values())
    return sum(
        result.run.config.epochs * typical.get(result.run.arm, anywhere) for result in results
    )


def seconds_to_train(plan: Plan, results: Sequence[RunResult], slots: int) -> float | None:
    """Estimate the wall-clock seconds to train all missing runs of a study, `slots` at a time.

    The estimate uses the measured epochs of the same study; for an arm without any, the median of
    the other arms.
    """
    work = work_to_train(plan, results)
    return None if work is None else max(sum(work) / slots, max(work, default=0.0))


def used_gpus(results: Iterable[RunResult]) -> bool:
    stages = [result.stage for result in results if result.stage is not None]
    return any(stage.environment.get("gpus") for stage in stages)


def bytes_of_predictions(configs: Iterable[Config]) -> int:
    """Compute how many bytes of predictions (logits) runs with these configs will store in all."""
    return sum(problem_of(config).cost.prediction_bytes(config) for config in configs)


def bytes_to_keep(plan: Plan, results: Iterable[RunResult], more_states: int = 0) -> int | None:
    """Estimate the size, in bytes, of the states (checkpoints) that are kept for use by other runs.

    Returns:
        The estimate; None if states will be kept, but their size is unknown, because no state of
            the study is stored yet.
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
