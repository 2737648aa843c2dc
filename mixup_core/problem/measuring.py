"""Measuring: functions that say which metrics a run measures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mixup_core.problem.metric import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class Measuring:
    """Functions that say which metrics a run measures, and which fields decide this."""

    predicted: Mapping[str, Metric] = field(default_factory=dict)
    """Metrics computed from the predictions of the last epoch (`reports.numbers.predicted`). Claims
    can use them; records do not contain them.
    """
    measures: Callable[[Any, str], bool] = lambda config, metric: True
    """Takes a configuration and a `headline` metric; returns True if its run measures the metric.
    """
    observed: Callable[[Any, str], Any] = lambda config, metric: config
    """Takes a configuration and a metric; returns the configuration without the fields that only
    decide which other metrics are measured. If the results are equal for two runs, both end with
    the same value of the metric.
    """
    lacks: Callable[[Any, str, int], str | None] = lambda config, metric, records: None
    """Takes a configuration, a metric that a claim needs, and a number of records. Returns a phrase
    that says what to set so that the run ends with that many records of the metric; None if it does
    already.
    """
    sample_size: Callable[[Any, str], int | None] = lambda config, metric: None
    """Returns the number N of examples if the metric is a share of N independent examples, so that
    its sampling error is sqrt(p (1 - p) / N). Otherwise it returns None.
    """
