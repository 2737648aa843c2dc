"""Costs: estimates of the seconds and bytes that runs will need, from earlier measurements."""

from collections.abc import Iterable, Sequence
from statistics import median

from mixup_core.problem import Config, problem_of
from sweeps.machine.resources import free_bytes
from sweeps.state.results import RunResult
from sweeps.state.stages import Plan
from sweeps.study.study import Study


def work_to_train(plan: Plan, results: Sequence[RunResult]) -> tuple[float, ...] | None:
    """Estimate the seconds of training of each run to train; None before a first measured epoch.

    The estimate uses the measured epochs of the same arm, or else the median of the other arms.
    Start-up time is not included.
    """
    return _seconds_of([(p.run.arm, p.epochs_to_train) for p in plan.pending], results)


def _seconds_of(
    epochs: Iterable[tuple[str, int]], results: Sequence[RunResult]
) -> tuple[float, ...] | None:
    """Return the seconds of numbers of epochs of arms, by the median epoch of each arm."""
    by_arm: dict[str, list[float]] = {}
    for result in results:
        by_arm.setdefault(result.run.arm, []).extend(facts.seconds for facts in result.facts)
    typical = {arm: median(seconds) for arm, seconds in by_arm.items() if seconds}
    if not typical:
        return None
    anywhere = median(typical.values())
    return tuple(number * typical.get(arm, anywhere) for arm, number in epochs)


def seconds_of_all(results: Sequence[RunResult]) -> float | None:
    """Estimate the seconds that training all runs of a study takes, one after another."""
    work = _seconds_of([(r.run.arm, r.run.config.epochs) for r in results], results)
    return None if work is None else sum(work)


def seconds_to_train(plan: Plan, results: Sequence[RunResult], slots: int) -> float | None:
    """Estimate the wall-clock seconds to train all missing runs of a study, `slots` at a time."""
    work = work_to_train(plan, results)
    return None if work is None else max(sum(work) / slots, max(work, default=0.0))


def used_gpus(results: Iterable[RunResult]) -> bool:
    stages = [result.stage for result in results if result.stage is not None]
    return any(stage.environment.get("gpus") for stage in stages)


def bytes_of_predictions(configs: Iterable[Config]) -> int:
    """Compute how many bytes of predictions (logits) runs with these configs will store in all."""
    return sum(problem_of(config).cost.prediction_bytes(config) for config in configs)


def bytes_to_keep(plan: Plan, results: Iterable[RunResult], more_states: int = 0) -> int | None:
    """Estimate the bytes of states kept for other runs; None while their size is unknown."""
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


def bytes_of_data(study: Study) -> dict[str, int]:
    """Return the bytes that each dataset needs in memory, by name: the largest of all arms."""
    sizes: dict[str, int] = {}
    for config in study.arms.values():
        for name, size in study.problem.cost.memory(config).items():
            sizes[name] = max(size, sizes.get(name, 0))
    return sizes


def most_bytes_of_a_run(study: Study) -> int:
    """Return an upper bound of the memory of a run without its data; 0 if runs are small."""
    configs = list(study.arms.values())
    if study.search is not None:
        configs += map(study.search.config_of, study.search.space.corners())
    return max(map(study.problem.cost.most_bytes, configs))


def bytes_free_for_runs(study: Study) -> int:
    """Return the memory that this machine has for runs once it holds their datasets."""
    return max(0, free_bytes() - sum(bytes_of_data(study).values()))
