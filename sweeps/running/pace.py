"""Pace: estimates the time until the end of a launch from its training speed."""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

_LATEST = 200
"""Number of latest reports, and of latest ended runs, that are used. The speed of a cluster may
change."""
_MOST_WAVES = 10
"""Largest number of waiting runs per slot that are simulated one by one; above it their mean is
used."""


@dataclass(kw_only=True, slots=True)
class Pace:
    """Measures the training speed of a launch, to estimate when its last run ends.

    A slot is the room for one run in training: a launch has as many slots as runs train in
    parallel. The estimated time of a run is its work divided by the speed of one slot, plus an
    overhead. The overhead is the median time that ended runs spent in their slots without training.
    The first run of each slot is left out, because it also waits for its process to start. To
    estimate the end, waiting runs are assigned to slots one after another.
    """

    _timed: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_LATEST))
    """Work and seconds of each of the latest reports."""
    _beside: deque[float] = field(default_factory=lambda: deque(maxlen=_LATEST))
    _begun: dict[str, float] = field(default_factory=dict)
    """Start time of each run in training, by key, plus the seconds it has trained since. What
    remains until its end is overhead."""
    _starting: set[str] = field(default_factory=set)
    """Keys of runs in training that are the first in their slot."""
    _most_begun: int = 0
    """Largest number of runs that were in training at the same time."""

    def begin(self, key: str, now: float) -> None:
        """Record that a run has started in a slot."""
        self._begun[key] = now
        if len(self._begun) > self._most_begun:
            self._most_begun = len(self._begun)
            self._starting.add(key)

    def train(self, key: str, work: float, seconds: float) -> None:
        """Record the work that a run has done, in the problem's unit, and the seconds it took."""
        self._timed.append((work, seconds))
        if key in self._begun:
            self._begun[key] += seconds

    def end(self, key: str, now: float) -> None:
        """Record that a run has left its slot."""
        if key not in self._begun:
            return
        beside = max(0.0, now - self._begun.pop(key))
        if key not in self._starting:
            self._beside.append(beside)
        self._starting.discard(key)

    def seconds_left(
        self, running: Sequence[float], num_waiting: int, work_waiting: float, slots: int
    ) -> float | None:
        """Estimate the seconds until the last run ends; None before an epoch was measured.

        `running` is the work that is left of each run in training.
        """
        speed = self._speed()
        if speed is None:
            return None
        count = max(1, len(running), min(slots, len(running) + num_waiting))
        ends = [work / speed for work in running] + [0.0] * (count - len(running))
        if not num_waiting:
            return max(ends)
        each = work_waiting / num_waiting / speed + (median(self._beside) if self._beside else 0.0)
        if num_waiting > _MOST_WAVES * count:
            return (sum(ends) + num_waiting * each) / count
        heapq.heapify(ends)
        for _ in range(num_waiting):
            heapq.heapreplace(ends, ends[0] + each)
        return max(ends)

    def _speed(self) -> float | None:
        """Return the work per second of one slot; None before an epoch was measured."""
        seconds = sum(seconds for _, seconds in self._timed)
        work = sum(work for work, _ in self._timed)
        return work / seconds if work and seconds else None
