"""Progress: the runs of a launch in training, their speed, and the time left."""

import heapq
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from sweeps.machine.terminal_text import chosen, padded, shortened, width_of
from sweeps.searching.sources import Outlook
from sweeps.study.budget import SECONDS_PER_HOUR
from sweeps.study.study import Run, Study

_RATE_OVER = 30.0
_LATEST = 200
"""Number of latest reports, and of latest ended runs, that are used. The speed of a cluster may
change."""
_MOST_WAVES = 10
"""Largest number of waiting runs per slot that are simulated one by one; above it their mean is
used."""


@dataclass(kw_only=True, slots=True)
class Pace:
    """Measures the training speed of a launch, to estimate when its last run ends.

    A slot is the room for one run. The time of a run is its work divided by the speed of one slot,
    plus the median time that ended runs spent in their slots without training. The first run of
    each slot is left out, because its process starts. Waiting runs are assigned to slots one after
    another.
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
        self._begun[key] = now
        if len(self._begun) > self._most_begun:
            self._most_begun = len(self._begun)
            self._starting.add(key)

    def train(self, key: str, work: float, seconds: float) -> None:
        self._timed.append((work, seconds))
        if key in self._begun:
            self._begun[key] += seconds

    def end(self, key: str, now: float) -> None:
        if key not in self._begun:
            return
        overhead = max(0.0, now - self._begun.pop(key))
        if key not in self._starting:
            self._beside.append(overhead)
        self._starting.discard(key)

    def seconds_left(
        self, running: Sequence[float], num_waiting: int, work_waiting: float, slots: int
    ) -> float | None:
        """Estimate the seconds until the last run ends; None before an epoch was measured."""
        speed = self._speed()
        if speed is None:
            return None
        count = max(1, len(running), min(slots, len(running) + num_waiting))
        ends = [work / speed for work in running] + [0.0] * (count - len(running))
        if not num_waiting:
            return max(ends)
        mean = work_waiting / num_waiting / speed + (median(self._beside) if self._beside else 0.0)
        if num_waiting > _MOST_WAVES * count:
            return (sum(ends) + num_waiting * mean) / count
        heapq.heapify(ends)
        for _ in range(num_waiting):
            heapq.heapreplace(ends, ends[0] + mean)
        return max(ends)

    def _speed(self) -> float | None:
        """Return the work per second of one slot; None before an epoch was measured."""
        seconds = sum(seconds for _, seconds in self._timed)
        work = sum(work for work, _ in self._timed)
        return work / seconds if work and seconds else None


@dataclass(kw_only=True, slots=True)
class Board:
    """Progress of all runs of a launch, formatted as lines of text."""

    study: Study
    finished: set[str] = field(default_factory=set)
    """Keys of finished runs."""
    failed: set[str] = field(default_factory=set)
    """Keys of failed runs."""
    running: dict[str, int] = field(default_factory=dict)
    """Number of finished epochs, by key of each run that is in training."""
    within: dict[str, float] = field(default_factory=dict)
    """Finished fraction of the current epoch in [0, 1], by run key; for long epochs only."""
    slots: int = 1
    """Number of runs trained in parallel."""
    outlook: Outlook = field(default_factory=Outlook)
    """Runs that a search or further seeds may still add to the launch."""
    has_ended: bool = False
    """True once at least one run has finished or failed in this launch."""
    clock: Callable[[], float] = time.monotonic
    _work_per_epoch: dict[str, int] = field(default_factory=dict)
    """Work of one epoch by run key, in the problem's unit of work, such as trained images."""
    _epochs_left: dict[str, int] = field(default_factory=dict)
    """Number of epochs left to train in this launch, by run key."""
    _trained: deque[tuple[float, int]] = field(default_factory=deque)
    """Time and work of each report of the last half minute."""
    _work_left: int = 0
    _work_expected: int = 0
    _waiting: set[str] = field(default_factory=set)
    """Keys of expected runs that are not in training yet."""
    _pace: Pace = field(default_factory=Pace)
    _reached: dict[str, int] = field(default_factory=dict)
    """Number of finished epochs, by key of each run that will start again."""

    def expect(self, run: Run, *, epochs: int, work_per_epoch: int) -> None:
        self._work_per_epoch[run.key] = work_per_epoch
        self._leave(run.key, epochs)
        self._work_expected += epochs * work_per_epoch
        self._waiting.add(run.key)
        self.failed.discard(run.key)

    def start(self, run: Run) -> None:
        self.running.setdefault(run.key, 0)
        self._waiting.discard(run.key)
        self._pace.begin(run.key, self.clock())
        if not self._trained:
            self._trained.append((self.clock(), 0))

    def advance(
        self,
        run: Run,
        epochs: int,
        *,
        trained: bool,
        within: float = 0.0,
        seconds: Sequence[float] = (),
    ) -> None:
        key = run.key
        if trained and seconds:
            self._pace.train(key, len(seconds) * self._work_per_epoch[key], sum(seconds))
        self.within[key] = min(1.0, max(0.0, within))  # a plugin's process may give any number
        began = self.running.get(key, 0) if trained else epochs
        # A run that starts again trains the epochs after its last stored stage once more.
        self._leave(key, self._epochs_left[key] + max(0, self._reached.pop(key, began) - began))
        gained = epochs - began
        self.running[key] = epochs
        if trained and gained > 0:
            self._leave(key, max(0, self._epochs_left[key] - gained))
            self._trained.append((self.clock(), gained * self._work_per_epoch[key]))

    def end(self, run: Run, *, failed: bool) -> None:
        self.has_ended = True
        self._waiting.discard(run.key)
        self._pace.end(run.key, self.clock())
        self.leave(run)
        (self.failed if failed else self.finished).add(run.key)

    def wait(self, run: Run) -> None:
        """Record that a run stopped training and will start again in this launch."""
        self.within.pop(run.key, None)
        if (reached := self.running.pop(run.key, None)) is not None:
            self._reached[run.key] = reached
            self._waiting.add(run.key)
            self._pace.end(run.key, self.clock())

    def leave(self, run: Run) -> None:
        """Record that a run, unless it has ended, waits for the next launch."""
        self.running.pop(run.key, None)
        self.within.pop(run.key, None)
        self._leave(run.key, 0)

    def work_per_second(self) -> float:
        """Return the work of all runs together per second, over the last half minute."""
        now = self.clock()
        while len(self._trained) > 1 and self._trained[1][0] < now - _RATE_OVER:
            self._trained.popleft()
        if len(self._trained) < 2:
            return 0.0
        (began, _), *later = self._trained
        return sum(work for _, work in later) / max(now - began, 1e-9)

    def seconds_left(self) -> float | None:
        """Estimate the seconds until the end of the launch; None before the first measurement.

        For a search this is an upper estimate, because points may be pruned.
        """
        running = [self._epochs_left[key] * self._work_per_epoch[key] for key in self.running]
        waiting = self._work_left - sum(running)
        mean = self._work_expected / max(1, len(self._epochs_left))
        to_come = self.outlook

        def with_more(more: int) -> float | None:
            num_waiting = len(self._waiting) + more
            return self._pace.seconds_left(running, num_waiting, waiting + more * mean, self.slots)

        def alone(more: int) -> float:
            return self._pace.seconds_left([], more, more * mean, self.slots) or 0.0

        most = with_more(to_come.num_runs + to_come.num_last)
        if most is None or not to_come.num_runs or to_come.hours is None:
            return most
        without_more, spent_in = with_more(0) or 0.0, to_come.hours * SECONDS_PER_HOUR
        # Runs added just before the budget is used up are still finished.
        until = without_more if spent_in <= without_more else spent_in + alone(to_come.at_once)
        return min(most, until + alone(to_come.num_last))

    def headline(self, width: int | None = None) -> str:
        runs = f"{len(self.finished)}/{len(self.study.runs())} runs"
        failed = f"{len(self.failed)} failed"
        running, rate, eta = f"{len(self.running)} running", "", ""
        if per_second := self.work_per_second():
            rate = f"{_spell_rate(per_second)} {self.study.problem.cost.work_unit}/s"
        if (seconds := self.seconds_left()) is not None and self.running:
            eta = f"ETA {spell_duration(seconds)}"
        parts = [self.study.name, *self._points(), runs, running, failed, rate, eta]
        droppable = [rate, *([] if self.failed else [failed]), running, *self._points()]
        while width is not None and droppable and len(_joined(parts)) > width:
            parts[parts.index(droppable.pop(0))] = ""
        if width is not None and (excess := len(_joined(parts)) - width) > 0:
            parts[0] = parts[0][: max(8, len(parts[0]) - excess)]
        return _joined(parts)

    def table(self, columns: int | None = None, rows: int | None = None) -> list[str]:
        """Return one line per arm; an arm that was added is shown while it is in training."""
        by_arm: dict[str, list[Run]] = {arm: [] for arm in self.study.arms}
        for run in self.study.runs():
            by_arm[run.arm].append(run)
        for arm in self.study.added:
            if not any(run.key in self.running for run in by_arm[arm]):
                del by_arm[arm]
        most = None if columns is None else max(12, columns // 2)
        names = {arm: arm if most is None else shortened(arm, most) for arm in by_arm}
        width = max(map(width_of, ("arm", *names.values())))
        lines, in_training = {}, set()
        for arm, runs in by_arm.items():
            done = f"{sum(run.key in self.finished for run in runs)}/{len(runs)}"
            running = ", ".join(
                f"seed {run.seed} {self.running[run.key]}/{run.config.epochs}"
                + spell_within(self.within.get(run.key, 0.0))
                for run in runs
                if run.key in self.running
            )
            lines[arm] = f"{padded(names[arm], width)}  {done:<5}  {running}".rstrip()
            if running:
                in_training.add(arm)
        most = None if rows is None else rows - 1
        return [f"{'arm':<{width}}  done   running", *chosen(lines, most, in_training)]

    def _leave(self, key: str, epochs: int) -> None:
        """Set the epochs left of a run, and update the work left of all runs without a new sum."""
        change = epochs - self._epochs_left.get(key, 0)
        self._work_left += change * self._work_per_epoch[key]
        self._epochs_left[key] = epochs

    def _points(self) -> list[str]:
        """Return the number of a search's points as text, such as `3/20 points`; else empty."""
        search = self.study.search
        if search is None:
            return []
        return [f"{len(self.study.points())}/{search.points} points"]


def _joined(parts: Sequence[str]) -> str:
    return "  ".join(filter(None, parts))


def spell_within(share: float) -> str:
    """Return the finished fraction of an epoch as text, such as ` +40 %`; empty for 0."""
    return f" +{share:.0%}".replace("%", " %") if share else ""


def _spell_rate(rate: float) -> str:
    return f"{rate:,.0f}".replace(",", " ") if rate >= 10 else f"{rate:.2g}"


def spell_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"
