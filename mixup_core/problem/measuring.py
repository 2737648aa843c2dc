"""Measuring: functions that say which metrics a run measures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mixup_core.problem.metric import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class Measuring:
    """Functions that say which metrics a run measures, and which fields decide this.

    Example:
        >>> from types import SimpleNamespace
        >>> from mixsweep.plugins import Measuring
        >>> measuring = Measuring(
        ...     lacks=lambda config, metric, _: None if config.kind == metric else "set kind"
        ... )
        >>> measuring.lacks(SimpleNamespace(kind="gap"), "gap", 1) is None
        True
    """

    predicted: Mapping[str, Metric] = field(default_factory=dict)
    """Metrics that `reports.numbers.predicted` computes from the predictions of the last epoch, by
    name. Claims can use them; records do not contain them.
    """
    observed: Callable[[Any, str], Any] = lambda config, metric: config
    """Takes a configuration and the name of a metric; returns a copy in which fields that only
    decide which other metrics are measured, and when, are set to fixed values. If the copies of two
    runs are equal, both runs end with the same value of the metric.
    """
    lacks: Callable[[Any, str, int], str | None] = lambda config, metric, records: None
    """Takes a configuration, the name of a metric that a claim or headline needs, and a number n.
    Returns None if the last n records that can contain the metric contain it. Otherwise returns a
    phrase that says what to set: `set quantity to gap`.
    """
    sample_size: Callable[[Any, str], int | None] = lambda config, metric: None
    """Takes a configuration and the name of a metric. Returns N if the metric is a fraction p of N
    independent examples, with the sampling error sqrt(p (1 - p) / N); otherwise returns None.
    """
