"""Cost: what a run of a problem takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """The cost of a run of a problem: for estimates of time, memory and disk."""

    work: Callable[[Any], int] = lambda config: 1
    """Units of work in one epoch, for estimates of rates and remaining time."""
    work_unit: str = "epochs"
    """One piece of it, for rates."""
    memory: Callable[[Any], Mapping[str, int]] = lambda config: {}
    """Data set to the bytes of it that a machine holds in memory, once for all of its runs."""
    most_bytes: Callable[[Any], int] = lambda config: 0
    """Bytes that a run does not exceed beside its data, found without looking at its network."""
    peak_bytes: Callable[[Any, str], int] | None = None
    """(configuration, device) to the most bytes that this process has held after a step like those
    of a run, its data left out; None: runs are small, and are not measured."""
    evaluations: Callable[[Any], int] = lambda config: int(config.epochs)
    """Records of a run that hold its headline metric."""
    prediction_bytes: Callable[[Any], int] = lambda config: 0
    """Bytes of the predictions that a finished run leaves, but for a few; 0: it leaves none. Else
    its process is a `Predicting`. They decide no key: a run is finished without them, too."""
