"""Summaries: what an arm's run in MLflow shows of its seeds, as curves and as text."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from mixup_core.problem import Problem
from sweeps.study.readouts import Last, Readout
from sweeps.tracking.progress import LoggedEpoch, Row

Summarise = Callable[[Sequence[Mapping[str, float]]], Mapping[str, float]]
"""Metrics of some runs, at least one, to finite metrics of their arm: `test/error_mean`, and from
two runs on `_sd`, `_ci_low` and `_ci_high`."""

MAIN_POINTS, OTHER_POINTS = 200, 10
"""Epochs at most in the curve of a metric that reports lead with, and of any other: an arm then has
fewer rows than its seeds have."""


def curves(
    seeds: Sequence[Sequence[LoggedEpoch]],
    problem: Problem,
    summarise: Summarise,
    lead: str | None = None,
) -> Iterator[Row]:
    """Yield mean, sd and interval over the complete runs of an arm, epoch by epoch.

    The last step, which MLflow's table shows, is the result. The time is the store's, and later
    with more seeds, so that a rebuilt MLflow has equal rows and seeds that join later are what is
    shown.

    Args:
        seeds: Of each run, at least one, its epochs.
        problem: Says which metrics matter.
        summarise: Gives the numbers.
        lead: The headline that the study names.
    """
    values: dict[str, dict[int, list[float]]] = {}
    times: dict[int, int] = {}
    for epochs in seeds:
        for record, facts in epochs:
            times[record.epoch] = max(times.get(record.epoch, 0), facts.stored_at_ms)
            for name, value in record.metrics.items():
                values.setdefault(name, {}).setdefault(record.epoch, []).append(value)
    main = set(main_metrics(problem, values, lead))
    for name, by_epoch in values.items():
        shared = [e for e, found in sorted(by_epoch.items()) if len(found) == len(seeds)]
        for epoch in _spread(shared, MAIN_POINTS if name in main else OTHER_POINTS):
            if not all(map(math.isfinite, by_epoch[epoch])):
                continue
            summary = summarise([{name: value} for value in by_epoch[epoch]])
            for statistic, value in summary.items():
                yield Row(statistic, epoch + 1, times[epoch] + len(seeds), value)


def headline_name(metric: str, readout: Readout) -> str:
    """Return the metric of arms that they are sorted by: what the table compares.

    At the last epoch it is where the curve ends. Another read-out has a metric named for it.
    """
    if readout == Last():
        return f"{metric}_mean"
    return f"{metric} {readout}".replace(",", "")  # MLflow takes no comma in a name


def headline_row(
    seeds: Sequence[Sequence[LoggedEpoch]], metric: str, readout: Readout, summarise: Summarise
) -> Row | None:
    """Return the number of an arm by another read-out than the last epoch, at its last step.

    Args:
        seeds: Of each complete run, at least one, its epochs.
        metric: Compared.
        readout: Which number stands for a run.
        summarise: Gives the mean.

    Returns:
        None if the curve ends there, or a run has no finite number.
    """
    read = [readout.of([record for record, _ in epochs], metric) for epochs in seeds]
    values = [value for value in read if value is not None and math.isfinite(value)]
    if readout == Last() or len(values) < len(seeds):
        return None
    step = max(epochs[-1][0].epoch for epochs in seeds) + 1
    at_ms = max(epochs[-1][1].stored_at_ms for epochs in seeds) + len(seeds)
    mean = summarise([{metric: value} for value in values])[f"{metric}_mean"]
    return Row(headline_name(metric, readout), step, at_ms, mean)


def texts(  # noqa: PLR0913  each is a thing of its own
    seeds: Sequence[Sequence[LoggedEpoch]],
    expected: int,
    problem: Problem,
    readout: Readout,
    summarise: Summarise,
    lead: str | None = None,
) -> Mapping[str, str]:
    """Return the results of an arm as one reads them: `test/error` to `19.68 ± 0.42 %`.

    Args:
        seeds: Of each complete run its epochs.
        expected: Number of seeds that the arm should have; as long as it has fewer, each text says
            of how many it is: `19.71 % (1/5)`.
        problem: Says which metrics matter, and their units.
        readout: Which number stands for a run.
        summarise: Gives mean and interval.
        lead: The headline that the study names.
    """
    records = [[record for record, _ in epochs] for epochs in seeds]
    measured = {name for of_run in records for name in of_run[-1].metrics}
    said = {}
    for name in main_metrics(problem, measured, lead):
        metric = problem.metric(name)
        read = [readout.of(of_run, name) for of_run in records]
        values = [value for value in read if value is not None and math.isfinite(value)]
        if not values or len(values) < len(seeds):
            continue
        summary = summarise([{name: value} for value in values])
        shown = [summary[f"{name}_mean"]]
        if f"{name}_ci_high" in summary:
            shown.append(summary[f"{name}_ci_high"] - shown[0])
        text = " ± ".join(f"{metric.scale * value:.{metric.digits}f}" for value in shown)
        unit = f" {metric.unit}" if metric.unit else ""
        count = f" ({len(seeds)}/{expected})" if len(seeds) < expected else ""
        said[name] = f"{text}{unit}{count}"
    return said


def main_metrics(
    problem: Problem, measured: Mapping[str, object] | set[str], lead: str | None = None
) -> tuple[str, ...]:
    """Return the metrics that a report leads with, of those that were measured."""
    leads = problem.headline if lead is None else (lead,)
    heads = [name for name in leads if name in measured][:1]
    beside = [
        pattern.replace("*", name.partition("/")[0]) for name in heads for pattern in problem.beside
    ]
    panels = [next((name for name in panel if name in measured), "") for panel in problem.curves]
    wanted = dict.fromkeys((*heads, *beside, *panels))
    return tuple(name for name in wanted if name in measured)


def _spread(epochs: Sequence[int], most: int) -> Sequence[int]:
    """Return at most so many of the epochs, evenly spread, the last among them."""
    if len(epochs) <= most:
        return epochs
    return [epochs[(place + 1) * len(epochs) // most - 1] for place in range(most)]
