"""Cost: time, memory and disk that a run of a problem needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Functions that estimate the work, the memory and the disk space of a run.

    The work is a count, such as of images. The time of a run is estimated from it.

    Example:
        >>> from types import SimpleNamespace
        >>> from mixsweep.plugins import Cost
        >>> cost = Cost(work=lambda config: config.steps, work_unit="steps")
        >>> cost.work(SimpleNamespace(steps=500))
        500
    """

    work: Callable[[Any], int] = lambda config: 1
    """Takes a configuration; returns the number of work units in one epoch, such as images. Speed
    and remaining time are computed from it.
    """
    work_unit: str = "epochs"
    """Name of the work units in messages, in the plural."""
    memory: Callable[[Any], Mapping[str, int]] = lambda config: {}
    """Takes a configuration; returns the memory of each dataset in bytes, by name. All runs on a
    machine share this memory.
    """
    most_bytes: Callable[[Any], int] = lambda config: 0
    """Takes a configuration; returns an upper bound of a run's memory without its data, in bytes.

    The function must not build the network.
    """
    peak_bytes: Callable[[Any, str], int] | None = None
    """Takes a configuration and a device, runs one training step, and returns the peak memory of
    this process without the data, in bytes. None: runs are small and need no measurement.
    """
    evaluations: Callable[[Any], int] = lambda config: int(config.epochs)
    """Takes a configuration; returns how many of its records contain the headline metric."""
    prediction_bytes: Callable[[Any], int] = lambda config: 0
    """Takes a configuration; returns the approximate size of a run's predictions, in bytes.

    0: the run stores no predictions. Otherwise its process must implement `Predicting`. A run whose
    predictions are missing counts as finished, since its keys do not depend on them.
    """
