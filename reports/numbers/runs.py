"""Runs: the results of a study by arm and seed, and the rows of `runs.csv`."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mixup_core.config.written_forms import flatten
from mixup_core.problem import Config
from reports.numbers.spelling import spell_csv
from reports.numbers.summary import Measure, summarise_runs
from sweeps.state.results import RunResult
from sweeps.study.readouts import ClaimReadout, Last
from sweeps.study.study import Study

Arranged = Mapping[str, Mapping[int, RunResult]]
"""Results by arm and seed."""


def arrange(study: Study, results: Iterable[RunResult]) -> dict[str, dict[int, RunResult]]:
    """Return the results of a study by arm and seed, in the order of the study."""
    by_run = {(result.run.arm, result.run.seed): result for result in results}
    arranged: dict[str, dict[int, RunResult]] = {arm: {} for arm in study.arms}
    for run in study.runs():
        nothing = RunResult(run=run, stage=None, failure=None)
        arranged[run.arm][run.seed] = by_run.pop((run.arm, run.seed), nothing)
    if by_run:
        raise ValueError(
            "results must belong to runs of the study, got results of these other pairs of arm and "
            f"seed: {sorted(by_run)}."
        )
    return arranged


def primary_of(study: Study, results: Iterable[RunResult]) -> tuple[Study, tuple[RunResult, ...]]:
    """Return a study and its results, without the arms that are trained only for variants."""
    primary = study.primary()
    return primary, tuple(result for result in results if result.run.arm in primary.arms)


def copies(study: Study, results: Iterable[RunResult]) -> Iterator[tuple[str, str]]:
    """Yield pairs of arms that computed the same although their keys differ: a copy, and the arm.

    All metrics that both record are equal at every seed, and one of them differs between seeds.
    """
    ends: dict[str, dict[int, Mapping[str, float]]] = {}
    for result in results:
        if result.outcome == "complete":
            ends.setdefault(result.run.arm, {})[result.run.seed] = result.records[-1].metrics
    alike: dict[Any, list[str]] = {}
    for arm, by_seed in ends.items():
        numbers = [by_seed[seed].get(study.headline) for seed in sorted(by_seed)]
        alike.setdefault((*sorted(by_seed), *numbers), []).append(arm)
    for first, *others in alike.values():
        for arm in others:
            ours, theirs = ends[arm], ends[first]
            shared = set.intersection(*(set(end) for end in (*ours.values(), *theirs.values())))
            varies = any(len({end[name] for end in ours.values()}) > 1 for name in shared)
            if varies and all(ours[s][name] == theirs[s][name] for s in ours for name in shared):
                yield arm, first


def complete_runs(results: Mapping[int, RunResult]) -> dict[int, RunResult]:
    """Return those results of an arm whose run is complete, by seed."""
    return {seed: result for seed, result in results.items() if result.outcome == "complete"}


def counted_runs(results: Mapping[int, RunResult]) -> dict[int, RunResult]:
    """Return the results that an arm's mean is computed from, by seed.

    These are the results of all complete runs. If a run of the arm diverged there are none, because
    the mean of the others would be too good.
    """
    has_diverged = any(result.outcome == "diverged" for result in results.values())
    return {} if has_diverged else complete_runs(results)


def values_of(
    arranged: Arranged,
    metric: str,
    readout: ClaimReadout,
    counted: Callable[[Mapping[int, RunResult]], Mapping[int, RunResult]] = counted_runs,
) -> dict[str, dict[int, float]]:
    """Return the values of a metric by arm and seed; usually none if a run of the arm diverged."""
    return {
        arm: {
            seed: value
            for seed, result in counted(by_seed).items()
            if (value := readout.of(result.records, metric)) is not None
        }
        for arm, by_seed in arranged.items()
    }


def are_paired(study: Study, arms: Iterable[str], metric: str) -> bool:
    """Return True if arms are evaluated on the same data, so that they can be paired by seed."""
    population = study.problem.comparing.population
    return len({population(study.arms[arm], metric) for arm in arms}) == 1


def minus(values: Mapping[int, float], others: Mapping[int, float]) -> dict[int, float]:
    """Return the differences of two arms by seed, at the seeds that both have."""
    return {seed: value - others[seed] for seed, value in values.items() if seed in others}


def measures_of(study: Study, metric: str, readout: ClaimReadout) -> dict[str, Measure]:
    """Return, for each arm, a metric's possible range and the number of images that it counts."""
    return {arm: measure_of(study, arm, metric, readout) for arm in study.arms}


def measure_of(study: Study, arm: str, metric: str, readout: ClaimReadout) -> Measure:
    """Return a metric's possible range, and the number of images that it counts in a run of an arm.

    The range is from the smallest to the largest possible value. The number is None if it is
    unknown, or if the metric, unlike the error, is no fraction of images.
    """
    least, most = readout.bounds(*study.problem.metric(metric).bounds)
    is_share = (least, most) == (0, 1) and arm in study.arms
    size = study.problem.measuring.sample_size(study.arms[arm], metric) if is_share else None
    return Measure(least=least, most=most, size=size)


def summariser(
    study: Study, arm: str
) -> Callable[[Sequence[Mapping[str, float]]], dict[str, float]]:
    """Return a function that computes mean, sd and interval of each metric over runs of an arm."""
    return partial(summarise_runs, measure_of=lambda name: measure_of(study, arm, name, Last()))


def metrics_of(study: Study, arranged: Arranged) -> tuple[str, ...]:
    """Return the names of all metrics of a study's complete runs, in the column order of tables."""
    measured = {study.headline}
    for by_seed in arranged.values():
        for result in complete_runs(by_seed).values():
            measured |= {
                metric
                for metric in result.records[-1].metrics
                if metric not in measured and study.readout.of(result.records, metric) is not None
            }
    metrics = study.problem.metrics
    listed = [name for name in metrics if name in measured]
    return (*listed, *sorted(measured - metrics.keys()))


def settings_of(config: Config) -> dict[str, Any]:
    """Return the settings of a configuration by dotted path; the value of a list is JSON text."""
    flat = flatten(config)
    return {p: json.dumps(v) if isinstance(v, tuple) else v for p, v in flat.items()}


def run_records(study: Study, results: Iterable[RunResult]) -> list[dict[str, Any]]:
    """Return the rows of `runs.csv`: a mapping per run (not per epoch), by arm and then by seed.

    `epochs` is the number of finished epochs. A metric is the value in the study's read-out; it is
    None if the run is not complete.
    """
    arranged = arrange(study, results)
    metrics = metrics_of(study, arranged)
    varying = study.varying()
    records = []
    for arm, by_seed in arranged.items():
        flat = settings_of(study.arms[arm])
        for seed, result in by_seed.items():
            is_complete = result.outcome == "complete"
            records.append(
                # Frozen: columns of `runs.csv`, which scripts read by name;
                # tests/reports/numbers/test_runs.py fails.
                {"run_key": result.run.key, "arm": arm, "seed": seed}
                | {"epochs": len(result.records)}
                | {_column(path): flat.get(path) for path in varying}
                | {
                    name: study.readout.of(result.records, name) if is_complete else None
                    for name in metrics
                }
                | {"outcome": result.outcome}
            )
    return records


def runs_csv(study: Study, results: Iterable[RunResult]) -> str:
    """Return `runs.csv`: one row per run, numbers at full precision, errors as fractions."""
    return spell_csv(run_records(study, results))


def _column(path: str) -> str:
    """Return the column name of a dotted path."""
    return "epochs_expected" if path == "epochs" else path
