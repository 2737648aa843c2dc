"""Console: shows the progress of a launch, as a table on a terminal or as lines in a log."""

import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO

from mixup_core.rules import printable
from sweeps.machine.terminal_text import chosen, clipped, padded, shortened, width_of
from sweeps.running.pace import Pace
from sweeps.searching.sources import Outlook
from sweeps.study.budget import SECONDS_PER_HOUR
from sweeps.study.study import Run, Study

_RATE_OVER = 30.0
_REDRAW_EVERY = 0.5
_LINE_EVERY = 60.0
_FIRST_LINES_EVERY = 9.0
"""Seconds between log lines until the first run has ended, so that users soon see progress."""


@dataclass(kw_only=True, slots=True)
class Board:
    """Progress of all runs of a launch, formatted as lines of text."""

    study: Study
    work_per_epoch: dict[str, int] = field(default_factory=dict)
    """Work of one epoch by run key, in the problem's unit of work, such as trained images."""
    epochs_to_train: dict[str, int] = field(default_factory=dict)
    """Number of epochs left to train in this launch, by run key."""
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
    _trained: deque[tuple[float, int]] = field(default_factory=deque)
    _work_since: int = 0
    """Work that was trained since the first entry of `_trained`."""
    _work_left: int = 0
    _work_expected: int = 0
    _waiting: set[str] = field(default_factory=set)
    """Keys of expected runs that are not in training yet."""
    _pace: Pace = field(default_factory=Pace)
    _reached: dict[str, int] = field(default_factory=dict)
    """Number of finished epochs, by key of each run that will start again."""

    def __post_init__(self) -> None:
        for key, epochs in self.epochs_to_train.items():
            self._work_left += epochs * self.work_per_epoch[key]
        self._work_expected = self._work_left
        self._waiting |= self.epochs_to_train.keys()

    def expect(self, run: Run, *, epochs: int, work_per_epoch: int) -> None:
        self.work_per_epoch[run.key] = work_per_epoch
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
            self._pace.train(key, len(seconds) * self.work_per_epoch[key], sum(seconds))
        self.within[key] = within
        began = self.running.get(key, 0) if trained else epochs
        lost = self._reached.pop(key, began) - began
        if lost > 0:
            self._leave(key, self.epochs_to_train[key] + lost)
        gained = epochs - began
        self.running[key] = epochs
        if trained and gained > 0:
            self._leave(key, max(0, self.epochs_to_train[key] - gained))
            work = gained * self.work_per_epoch[key]
            self._trained.append((self.clock(), work))
            self._work_since += work

    def end(self, run: Run, *, failed: bool) -> None:
        self.has_ended = True
        self.running.pop(run.key, None)
        self.within.pop(run.key, None)
        self._waiting.discard(run.key)
        self._pace.end(run.key, self.clock())
        self._leave(run.key, 0)
        (self.failed if failed else self.finished).add(run.key)

    def wait(self, run: Run) -> None:
        """Record for the displayed progress that a run stopped training and will start again."""
        self.within.pop(run.key, None)
        if (reached := self.running.pop(run.key, None)) is not None:
            self._reached[run.key] = reached
            self._waiting.add(run.key)
            self._pace.end(run.key, self.clock())

    def leave(self, run: Run) -> None:
        """Record for the displayed progress that a run waits, unfinished, for the next launch."""
        self.running.pop(run.key, None)
        self.within.pop(run.key, None)
        self._leave(run.key, 0)

    def work_per_second(self) -> float:
        """Return the training speed of all runs together, over the last half minute.

        The speed is work per second, in the problem's unit of work, such as trained images.
        """
        now = self.clock()
        while len(self._trained) > 1 and self._trained[1][0] < now - _RATE_OVER:
            self._trained.popleft()
            self._work_since -= self._trained[0][1]
        if len(self._trained) < 2:
            return 0.0
        return self._work_since / max(now - self._trained[0][0], 1e-9)

    def seconds_left(self) -> float | None:
        """Estimate the seconds until the end of the launch; None before the first measurement.

        For a search this is an upper estimate, because points may be pruned.
        """
        running = [self.epochs_to_train[key] * self.work_per_epoch[key] for key in self.running]
        waiting = self._work_left - sum(running)
        mean = self._work_expected / max(1, len(self.epochs_to_train))
        to_come = self.outlook

        def with_more(more: int) -> float | None:
            num_waiting = len(self._waiting) + more
            return self._pace.seconds_left(running, num_waiting, waiting + more * mean, self.slots)

        def alone(more: int) -> float:
            return self._pace.seconds_left([], more, more * mean, self.slots) or 0.0

        most = with_more(to_come.num_runs + to_come.num_last)
        if most is None or not to_come.num_runs or to_come.hours is None:
            return most
        here, spent_in = with_more(0) or 0.0, to_come.hours * SECONDS_PER_HOUR
        # Runs added just before the budget is used up are still finished.
        until = here if spent_in <= here else spent_in + alone(to_come.at_once)
        return min(most, until + alone(to_come.num_last))

    def headline(self, width: int | None = None) -> str:
        runs = f"{len(self.finished)}/{len(self.study.runs())} runs"
        failed = f"{len(self.failed)} failed"
        running, rate, left = f"{len(self.running)} running", "", ""
        if per_second := self.work_per_second():
            rate = f"{_spell_rate(per_second)} {self.study.problem.cost.work_unit}/s"
        if (seconds := self.seconds_left()) is not None and self.running:
            left = f"ETA {spell_duration(seconds)}"
        parts = [self.study.name, *self._points(), runs, running, failed, rate, left]
        droppable = [rate, *([] if self.failed else [failed]), running, *self._points()]
        while width is not None and droppable and len(_joined(parts)) > width:
            parts[parts.index(droppable.pop(0))] = ""
        if width is not None and (excess := len(_joined(parts)) - width) > 0:
            parts[0] = parts[0][: max(8, len(parts[0]) - excess)]
        return _joined(parts)

    def table(self, columns: int | None = None, rows: int | None = None) -> list[str]:
        """Return one line per arm: the finished seeds, and the progress of seeds in training.

        Arms that a search added (its points and its confirmation) are shown only while one of their
        seeds is in training.
        """
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
        """Set the number of epochs that a run has left to train, and update the total work."""
        change = epochs - self.epochs_to_train.get(key, 0)
        self._work_left += change * self.work_per_epoch[key]
        self.epochs_to_train[key] = epochs

    def _points(self) -> list[str]:
        """Return the number of a search's points as text, such as `3/20 points`; else empty."""
        search = self.study.search
        if search is None:
            return []
        return [f"{len(self.study.points())}/{search.points} points"]


class Console:
    """Prints the progress of a launch to a stream.

    On a terminal the table is redrawn in place; elsewhere occasional plain lines are printed.
    """

    def __init__(self, board: Board, stream: TextIO | None = None, *, is_live: bool = True) -> None:
        self._board = board
        self._stream = stream or sys.stderr
        self._live = is_live and self._stream.isatty()
        self._drawn = 0
        self._last = -float("inf")

    def refresh(self) -> None:
        """Print the progress again if enough time has passed since the last print."""
        now = time.monotonic()
        log_every = _LINE_EVERY if self._board.has_ended else _FIRST_LINES_EVERY
        if now - self._last < (_REDRAW_EVERY if self._live else log_every):
            return
        self._last = now
        self._draw()

    def note(self, line: str) -> None:
        """Print a line that stays visible above the table, such as a failure."""
        self._erase()
        self._write(f"{printable(line)}\n")

    def change(self, line: str) -> None:
        """Print a line on an event in a run, such as its end, if no table shows it."""
        if not self._live:
            self._write(f"{line}  [{self._board.headline()}]\n")
            self._last = time.monotonic()

    def close(self) -> None:
        self._draw()

    def _draw(self) -> None:
        lines = [self._board.headline()]
        if self._live:
            columns, rows = shutil.get_terminal_size()
            lines = [self._board.headline(columns - 1), *self._board.table(columns, rows - 2)]
            lines = [clipped(line, columns - 1) for line in lines[: rows - 1]]
            self._erase()
            self._drawn = len(lines)
        self._write("".join(f"{line}\n" for line in lines))

    def _erase(self) -> None:
        if self._drawn:
            self._write(f"\x1b[{self._drawn}F\x1b[J")
            self._drawn = 0

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the reader is gone; training continues
            self._stream.write(text)
            self._stream.flush()


@contextmanager
def still(
    what: str,
    stream: TextIO | None = None,
    *,
    left: Callable[[], str] | None = None,
    after: float = 1.0,
    every: float = 8.0,
) -> Iterator[None]:
    """Print what the program is doing during the block, then the elapsed time every few seconds.

    Nothing is printed if the block ends within `after` seconds.
    """
    done, started = threading.Event(), time.monotonic()
    stream = stream or sys.stderr

    def tell() -> None:
        line, wait = what, after
        while not done.wait(wait):
            with suppress(OSError, ValueError):  # the reader is gone
                stream.write(f"{line}\n")
                stream.flush()
            wait = every
            line = f"{what}, {time.monotonic() - started + every:.0f} s"
            line += "" if left is None else f", {left()}"

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join(1.0)  # it may wait for a reader of the output


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
