"""Pace: how fast the runs of a launch are trained, and how long the rest of them takes."""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

_LATEST = 200
"""Reports, and ended runs, that are looked at: a cluster may have become faster or slower."""
_MOST_WAVES = 10
"""Most runs, one after the other in a slot, whose ends are simulated; beyond, their mean is
used."""


@dataclass(kw_only=True, slots=True)
class Pace:
    """Seconds as they were measured where epochs were trained, so that no start-up is among them.

    A run takes its work at the speed of a slot, and what it takes beside: the time that ended runs
    had their slots without training. The first run in a slot waits for its process to start, which
    those after it do not. Runs are placed on the slots one after another.
    """

    _timed: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_LATEST))
    """Work and its seconds, report by report."""
    _beside: deque[float] = field(default_factory=lambda: deque(maxlen=_LATEST))
    _begun: dict[str, float] = field(default_factory=dict)
    """Key of a run that has a slot to when it got it, put off by the seconds it has trained."""
    _starting: set[str] = field(default_factory=set)
    """Keys of runs that have a slot which no run had before."""
    _most_begun: int = 0
    """Slots that were in use at once."""

    def begin(self, key: str, now: float) -> None:
        """Note that a run has got a slot."""
        self._begun[key] = now
        if len(self._begun) > self._most_begun:
            self._most_begun = len(self._begun)
            self._starting.add(key)

    def train(self, key: str, work: float, seconds: float) -> None:
        """Note work that a run has done, and its seconds."""
        self._timed.append((work, seconds))
        if key in self._begun:
            self._begun[key] += seconds

    def end(self, key: str, now: float) -> None:
        """Note that a run has left its slot."""
        if key not in self._begun:
            return
        beside = max(0.0, now - self._begun.pop(key))
        if key not in self._starting:
            self._beside.append(beside)
        self._starting.discard(key)

    def seconds_left(
        self, running: Sequence[float], num_waiting: int, work_waiting: float, slots: int
    ) -> float | None:
        """Return the seconds until the last run ends; None while no epoch was timed.

        Args:
            running: Work left of each run that has a slot.
            num_waiting: Runs that have none yet.
            work_waiting: Of these together.
            slots: Runs trained side by side.
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
        """Return the work per second of one slot."""
        seconds = sum(seconds for _, seconds in self._timed)
        work = sum(work for work, _ in self._timed)
        return work / seconds if work and seconds else None
