"""Cost: time, memory and disk that a run of a problem needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Estimates of the time, memory and disk that a run of a problem needs."""

    work: Callable[[Any], int] = lambda config: 1
    """Units of work in one epoch, for rates and the remaining time."""
    work_unit: str = "epochs"
    """Name of a unit of work, plural."""
    memory: Callable[[Any], Mapping[str, int]] = lambda config: {}
    """Bytes of each dataset, by name, that a machine holds in memory once for all its runs."""
    most_bytes: Callable[[Any], int] = lambda config: 0
    """Upper bound of a run's memory in bytes without its data, computed without building the
    network.
    """
    peak_bytes: Callable[[Any, str], int] | None = None
    """Measures memory: (configuration, device) to the peak bytes of this process after one training
    step, without the data. None: runs are small and need no measurement.
    """
    evaluations: Callable[[Any], int] = lambda config: int(config.epochs)
    """Number of a run's records that contain its headline metric."""
    prediction_bytes: Callable[[Any], int] = lambda config: 0
    """Approximate bytes of the predictions of a finished run. 0 means that it stores none;
    otherwise its process must be a `Predicting`. Predictions enter no key: a run without them is
    finished, too.
    """
