"""Rows: metric values of runs and arms as rows for MLflow, and results of arms as text."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mixup_core.problem import Metric, Problem
from mixup_core.records import EpochRecord
from mixup_core.store.manifests import EpochFacts
from sweeps.state.results import Outcome, RunResult
from sweeps.study.readouts import Last, Readout
from sweeps.study.study import Run, headlines

SECONDS = "time/seconds"
"""Metric in MLflow of the time that an epoch took."""

LoggedEpoch = tuple[EpochRecord, EpochFacts]


class Row(NamedTuple):
    """One value of a metric at one step of a run in MLflow.

    MLflow's table shows, for each metric, the row with the largest step, then time, then value. It
    stores an equal row only once.
    """

    name: str
    step: int
    """Number of epochs trained."""
    at_ms: int
    """Unix time in ms."""
    value: float


@dataclass(frozen=True, kw_only=True)
class RunProgress:
    """Epochs and outcome of a run so far, from the store or from the driver that trains it."""

    run: Run
    outcome: Outcome
    epochs: tuple[LoggedEpoch, ...] = ()
    """Epochs in order. For a run in training, epochs shared with other runs may be missing."""
    failure: str = ""
    """Error message, if the run failed or diverged; otherwise empty."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment in which the last epochs were trained."""
    is_live: bool = False
    """True if a driver trains the run."""

    @classmethod
    def stored(cls, result: RunResult) -> "RunProgress":
        failure = result.failure
        return cls(
            run=result.run,
            outcome=result.outcome,
            epochs=tuple(zip(result.records, result.facts, strict=True)),
            failure=failure.message if failure and result.outcome == failure.kind else "",
            environment={} if result.stage is None else result.stage.environment,
        )

    @property
    def is_complete(self) -> bool:
        return self.outcome == "complete"

    @property
    def has_begun(self) -> bool:
        """True if the run has been in training; only such runs are in MLflow."""
        return self.is_live or self.outcome != "missing"

    def trained(self, epochs: Iterable[LoggedEpoch]) -> "RunProgress":
        """Return a copy with new epochs, in training; this same object if none is new."""
        known = {record.epoch: (record, facts) for record, facts in self.epochs}
        merged = {record.epoch: (record, facts) for record, facts in epochs} | known
        if len(merged) == len(known):
            return self
        in_order = tuple(merged[epoch] for epoch in sorted(merged))
        return replace(self, epochs=in_order, outcome="partial", failure="", is_live=True)


def rows_of(epochs: Iterable[LoggedEpoch]) -> list[Row]:
    """Return all metric values of some epochs as rows for MLflow, with times from the store."""
    # Frozen: name, step and time of a row. MLflow's runs of earlier versions would be deleted and
    # written again; tests/sweeps/tracking/test_study_log.py fails.
    return [
        Row(name, record.epoch + 1, facts.stored_at_ms, value)
        for record, facts in epochs
        for name, value in {**record.metrics, SECONDS: facts.seconds}.items()
    ]


def digest_of(rows: Iterable[Row], *others: object) -> str:
    """Return a hash of rows and other values, which shows whether MLflow has them already."""
    return hashlib.sha256(repr((sorted(rows), others)).encode()).hexdigest()[:32]


Summarise = Callable[[Sequence[Mapping[str, float]]], Mapping[str, float]]
"""Function from the metrics of one or more runs to the metrics of their arm, all finite:
`test/error_mean`, and with two or more runs also `_sd`, `_ci_low` and `_ci_high`."""

MAIN_POINTS, OTHER_POINTS = 200, 10
"""Largest number of epochs in an arm's curve, for main metrics of reports and for other metrics. So
the arm has fewer rows than its runs."""


def curves(
    seeds: Sequence[Sequence[LoggedEpoch]],
    problem: Problem,
    summarise: Summarise,
    lead: str | None = None,
) -> Iterator[Row]:
    """Yield rows for MLflow: mean, sd and interval over the complete runs of an arm, by epoch.

    Long curves are thinned: to `MAIN_POINTS` epochs for main metrics of the report, to
    `OTHER_POINTS` for others.

    An epoch has a row only if every run has a finite value of the metric there. MLflow's table
    shows the last step, which is the result. The time of a row is the latest time at which one of
    the runs stored the epoch, plus one ms for each run. It depends on the store alone, so a rebuilt
    MLflow has equal rows. If several rows have the same step, MLflow shows that of the most runs.
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
        shared = [e for e, measured in sorted(by_epoch.items()) if len(measured) == len(seeds)]
        for epoch in _spread(shared, MAIN_POINTS if name in main else OTHER_POINTS):
            if not all(map(math.isfinite, by_epoch[epoch])):
                continue
            summary = summarise([{name: value} for value in by_epoch[epoch]])
            for statistic, value in summary.items():
                yield Row(statistic, epoch + 1, times[epoch] + len(seeds), value)


def _spell(metric: Metric, mean: float, low: float | None = None, high: float | None = None) -> str:
    """Return `19.68 ± 0.42`, with both ends of an interval whose middle is not the mean."""
    text, *ends = (
        f"{metric.scale * value:.{metric.digits}f}"
        for value in (mean, low, high)
        if value is not None
    )
    if low is None or high is None:
        return text
    above, below = high - mean, mean - low
    if not math.isclose(above, below, rel_tol=1e-6):
        return f"{text} [{', '.join(ends)}]"
    half = f"{metric.scale * above:.{metric.digits}f}"
    return f"{text} ± {half if float(half) else f'{metric.scale * above:.1g}'}"


def headline_name(metric: str, readout: Readout) -> str:
    """Return the metric that sorts arms: the curve of means, or one for another read-out."""
    if readout == Last():
        return f"{metric}_mean"
    return f"{metric} {readout}".replace(",", "")  # MLflow allows no comma in a name


def headline_row(
    seeds: Sequence[Sequence[LoggedEpoch]], metric: str, readout: Readout, summarise: Summarise
) -> Row | None:
    """Return an arm's mean for a read-out that is not the last epoch, which the curve has."""
    values = _read_out(seeds, metric, readout)
    if readout == Last() or not values:
        return None
    step = max(epochs[-1][0].epoch for epochs in seeds) + 1
    at_ms = max(epochs[-1][1].stored_at_ms for epochs in seeds) + len(seeds)
    mean = summarise([{metric: value} for value in values])[f"{metric}_mean"]
    return Row(headline_name(metric, readout), step, at_ms, mean)


def _read_out(seeds: Sequence[Sequence[LoggedEpoch]], metric: str, readout: Readout) -> list[float]:
    """Return the read-out of each run; empty if one has no finite value."""
    measured = [readout.of([record for record, _ in epochs], metric) for epochs in seeds]
    values = [value for value in measured if value is not None and math.isfinite(value)]
    return values if len(values) == len(seeds) else []


def texts(  # noqa: PLR0913  six independent inputs
    seeds: Sequence[Sequence[LoggedEpoch]],
    expected: int,
    problem: Problem,
    readout: Readout,
    summarise: Summarise,
    lead: str | None = None,
) -> Mapping[str, str]:
    """Return the results of an arm as text by metric, such as `19.68 ± 0.42 %` for `test/error`."""
    measured = {name for epochs in seeds for name in epochs[-1][0].metrics}
    by_metric = {}
    for name in main_metrics(problem, measured, lead):
        metric = problem.metric(name)
        values = _read_out(seeds, name, readout)
        if not values:
            continue
        summary = summarise([{name: value} for value in values])
        ends = (summary.get(f"{name}_ci_{end}") for end in ("low", "high"))
        text = _spell(metric, summary[f"{name}_mean"], *ends)
        unit = f" {metric.unit}" if metric.unit else ""
        count = f" ({len(seeds)}/{expected})" if len(seeds) < expected else ""
        by_metric[name] = f"{text}{unit}{count}"
    return by_metric


def main_metrics(
    problem: Problem, measured: Mapping[str, object] | set[str], lead: str | None = None
) -> tuple[str, ...]:
    """Return the measured metrics that a report shows: headline, other columns, curves."""
    heads = [name for name in headlines(problem, lead) if name in measured][:1]
    columns = [
        pattern.replace("*", name.partition("/")[0])
        for name in heads
        for pattern in problem.presentation.beside
    ]
    panels = [
        next((name for name in panel if name in measured), "")
        for panel in problem.presentation.curves
    ]
    wanted = dict.fromkeys((*heads, *columns, *panels))
    return tuple(name for name in wanted if name in measured)


def _spread(epochs: Sequence[int], most: int) -> Sequence[int]:
    """Return at most `most` of the epochs, evenly spread, including the last."""
    if len(epochs) <= most:
        return epochs
    return [epochs[(place + 1) * len(epochs) // most - 1] for place in range(most)]
