"""Monitor: passes the reports of runs to MLflow, the console and the records of failures.

This module does not use Ray.
"""

import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TextIO

from mixup_core.addresses import without_secrets
from mixup_core.keys import stage_key, stage_keys
from mixup_core.rules import printable
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from mixup_core.store.manifests import Failure
from sweeps.leasing.holders import RunningRun
from sweeps.leasing.lease import Lease, Stop, asked_to_stop
from sweeps.machine.terminal_text import clipped
from sweeps.running.progress import Board
from sweeps.running.storing import read_row
from sweeps.searching.sources import Outlook, RunSource
from sweeps.state.results import RunResult, read_results
from sweeps.state.stages import PlannedRun
from sweeps.study.study import Run
from sweeps.tracking.tracker import Tracker

_PROGRESS_EVERY = 1.0
_REDRAW_EVERY = 0.5
_LINE_EVERY = 60.0
_FIRST_LINES_EVERY = 9.0
"""Seconds between log lines until the first run has ended, so that users soon see progress."""


@dataclass(kw_only=True)
class Monitor:
    """Shows the progress of a launch's runs, and records their metrics and failures.

    The engine, which trains the runs, calls a method when a run starts, reports or ends.
    """

    source: RunSource
    store: Store
    tracker: Tracker
    lease: Lease
    slots: int = 1
    """Number of runs trained in parallel; 1 until it is known."""
    failures: dict[str, Failure] = field(default_factory=dict)
    """Failures of runs in this launch, by run key."""
    stop: Stop | None = None
    """The kind of stop that a user requested; None without a request."""
    is_live: bool = True
    """True if a terminal shows one table that is redrawn in place; False for plain lines."""

    def __post_init__(self) -> None:
        study, stored = self.source.study, self.store.keys()
        ends = {run.key: stage_key(run.config, run.config.epochs) for run in study.runs()}
        self._planned: dict[str, PlannedRun] = {}
        self._tracked: set[str] = set()
        self._board = Board(
            study=study,
            finished={key for key, end in ends.items() if end in stored},
            slots=self.slots,
        )
        self._console = Console(self._board, is_live=self.is_live)
        self._progress_at = 0.0
        self._unshared: str | None = None  # message of a worker that does not see the store
        self._left: set[str] = set()  # keys of runs that ended early, but have not failed

    def join(self, joined: Sequence[PlannedRun]) -> None:
        """Show runs that this launch will train, and new arms; delete their stored failures."""
        study = self._board.study = self.source.study
        for key in self.store.failures.keys() & {planned.run.key for planned in joined}:
            self.store.failures.remove(key)
        for planned in joined:
            run = planned.run
            self._planned[run.key] = planned
            self._board.expect(
                run,
                epochs=planned.epochs_to_train,
                work_per_epoch=study.problem.cost.work(run.config),
            )
        self._board.outlook = self._outlook()
        self.tracker.grow(study)
        grown = [run for arm in study.added for run in study.runs_of(arm)]
        if new := [run for run in grown if run.key not in self._tracked]:
            self.tracker.reconcile(read_results(new, self.store))
            self._tracked |= {run.key for run in new}

    def start(self, run: Run) -> None:
        self._board.start(run)
        # The next `step` publishes the start, before training, which may kill the process.
        self._progress_at = 0.0
        self._console.change(f"{run.arm} seed {run.seed} starts")

    def report(self, run: Run, report: dict[str, Any], attempts: int = 1) -> None:
        """Process a report of a run: show progress, send epochs to MLflow, record a failure."""
        for warning in report["warnings"]:
            self.note(f"{run.arm} seed {run.seed}: {warning}")
        rows = report.pop("rows")  # Tune keeps the last report of every trial in memory
        self._board.advance(
            run,
            report["epochs"],
            trained=report["trained"],
            within=report["within"],
            seconds=[row["seconds"] for row in rows],
        )
        self.tracker.post(run, [read_row(row) for row in rows])
        failure = report["failure"]
        if failure and failure["kind"] == "unshared":
            self._unshared = failure["message"]
            self._left.add(run.key)
        elif failure and failure["kind"] == "stopped":
            self._left.add(run.key)
        elif failure and failure["kind"] in {"declined", "held"}:
            self.wait(run)
        elif failure:
            self.fail(run, attempts=attempts, **failure)

    @property
    def num_running(self) -> int:
        return len(self._board.running)

    def wait(self, run: Run) -> None:
        self._board.wait(run)

    def end(self, run: Run) -> None:
        """Show that a run has ended; do nothing if it will start again."""
        if run.key not in self._board.running and run.key not in self.failures:
            return
        if run.key in self._left:
            self._board.leave(run)
            return
        failed = run.key in self.failures
        self._board.end(run, failed=failed)
        if not failed:
            self._console.change(f"{run.arm} seed {run.seed} finished")
        self._track_end(run)

    def note(self, line: str) -> None:
        self._console.note(line)

    def step(self) -> None:
        """Refresh the console, publish the progress, stop if asked to; call it once a second."""
        self.lease.require_held()
        if self._unshared is not None:
            raise StoreError(self._unshared)
        self._console.refresh()
        now = time.monotonic()
        if now - self._progress_at < _PROGRESS_EVERY:
            return
        self._progress_at = now
        self._board.outlook = self._outlook()
        running = [
            RunningRun(
                arm=run.arm,
                seed=run.seed,
                epoch=self._board.running[run.key],
                within=self._board.within.get(run.key, 0.0),
            )
            for run in (self._planned[key].run for key in self._board.running)
        ]
        with suppress(StoreError):  # a full disk must not end other runs
            self.lease.write_progress(running, self._board.seconds_left())
        with suppress(StoreError):
            self._hear(asked_to_stop(self.store, self.source.study.name, self.lease.holder))

    def close(self) -> None:
        self._console.close()

    def run_of(self, key: str) -> Run:
        """Return the run with a given run key; it must have been added by `join`."""
        return self._planned[key].run

    def fail(  # noqa: PLR0913  the fields of a failure
        self,
        run: Run,
        *,
        kind: Literal["diverged", "failed"],
        message: str,
        epoch: int | None,
        attempts: int,
        trace: str = "",
    ) -> None:
        """Record that a run failed and why; logins in addresses are removed from the texts."""
        message, trace = without_secrets(message), without_secrets(trace)
        failure = Failure(
            run_key=run.key,
            kind=kind,
            message=printable(message),
            epoch=epoch,
            attempts=attempts,
            trace=trace,
        )
        self.failures[run.key] = failure
        self.note(f"{run.arm} seed {run.seed} {kind}: {message}")
        with suppress(StoreError):  # kept for this launch; the next one tries the run again
            self.store.failures.write(failure)

    def _outlook(self) -> Outlook:
        return Outlook() if self.stop is not None else self.source.outlook(self.slots)

    def _hear(self, stop: Stop | None) -> None:
        if stop is not None and self.stop is None:
            effect = "no more runs start"
            if stop == "now":
                effect = "runs end now, and their stored epochs are kept"
            self.note(f"this launch was asked to stop: {effect}")
        self.stop = stop or self.stop
        self.source.is_stopped = self.stop is not None
        if stop == "now":
            raise KeyboardInterrupt

    def _track_end(self, run: Run) -> None:
        """Write the end of a run to MLflow; this also updates the mean of its arm."""
        with suppress(StoreError):  # the end of the launch writes what is missing in MLflow
            deepest_first = self.store.read_all(reversed(stage_keys(run.config)))
            stage = next(iter(deepest_first.values()), None)
            failure = self.failures.get(run.key)
            self.tracker.reconcile([RunResult(run=run, stage=stage, failure=failure)])


class Console:
    """Prints progress: on a terminal a table redrawn in place, elsewhere occasional lines."""

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
