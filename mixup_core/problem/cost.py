"""Cost: time, memory and disk that a run of a problem needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Functions that estimate the time, memory and disk that a run of a problem needs."""

    work: Callable[[Any], int] = lambda config: 1
    """Returns the units of work in one epoch of a configuration, for rates and the remaining time.
    """
    work_unit: str = "epochs"
    """Name of a unit of work, plural, for messages."""
    memory: Callable[[Any], Mapping[str, int]] = lambda config: {}
    """Returns bytes by dataset name: memory that a machine needs once for all its runs."""
    most_bytes: Callable[[Any], int] = lambda config: 0
    """Returns an upper bound, in bytes, of a run's memory without its data.

    It is computed from the configuration, without building the network.
    """
    peak_bytes: Callable[[Any, str], int] | None = None
    """Measures memory: takes configuration and device, runs one training step, and returns the peak
    bytes of this process without the data. None: runs are small and need no measurement.
    """
    evaluations: Callable[[Any], int] = lambda config: int(config.epochs)
    """Returns the number of a run's records that contain its headline metric."""
    prediction_bytes: Callable[[Any], int] = lambda config: 0
    """Returns the approximate bytes of the predictions that a finished run stores.

    0 means that it stores none; otherwise its process must be a `Predicting`. Keys do not depend on
    predictions: a run whose predictions are missing counts as finished.
    """
