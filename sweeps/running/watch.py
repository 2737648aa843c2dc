"""Watch: hears what trials report, and tells the tracker, the console and the failure records."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from ray import tune

from mixup_core.keys import stage_key, stage_keys
from mixup_core.problem import lacks_memory
from mixup_core.rules import printable
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from mixup_core.store.manifests import Failure
from sweeps.leasing.holders import RunningRun
from sweeps.leasing.lease import Lease
from sweeps.leasing.stops import Stop, asked_to_stop
from sweeps.running.console import Board, Console
from sweeps.running.storing import read_row
from sweeps.searching.outlook import Outlook
from sweeps.searching.sources import RunSource
from sweeps.state.results import RunResult, read_results
from sweeps.state.stages import PlannedRun
from sweeps.study.study import Run
from sweeps.tracking.tracker import Tracker

_PROGRESS_EVERY = 1.0


@dataclass
class Watch(tune.Callback):  # type: ignore[misc]
    """Hears of every start, report and end of a trial; Tune calls it in the driver's loop."""

    source: RunSource
    store: Store
    tracker: Tracker
    lease: Lease
    slots: int = 1
    """Runs trained side by side, as far as is known."""
    failures: dict[str, Failure] = field(default_factory=dict)
    """Key to failure of the runs that failed in this launch."""
    stop: Stop | None = None
    """How this launch was asked to stop; None if it was not."""

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
        self._console = Console(self._board)
        self._progress_at = 0.0
        self._unshared: str | None = None
        self._left: set[str] = set()

    def join(self, joined: Sequence[PlannedRun]) -> None:
        """Expect runs that will be started; the study may have grown by their arms."""
        study = self._board.study = self.source.study
        for key in self.store.failures.read_all().keys() & {planned.run.key for planned in joined}:
            self.store.failures.remove(key)
        for planned in joined:
            run = planned.run
            self._planned[run.key] = planned
            self._board.expect(
                run,
                epochs=planned.epochs_to_train,
                work_per_epoch=study.problem.work(run.config),
            )
        self._board.outlook = self._outlook()
        self.tracker.grow(study)
        grown = [run for arm in study.own_seeds for run in study.runs_of(arm)]
        if new := [run for run in grown if run.key not in self._tracked]:
            self.tracker.reconcile(read_results(new, self.store))
            self._tracked |= {run.key for run in new}

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Show that a run has a slot."""
        run = self._run_of(trial)
        self._board.start(run)
        self._console.change(f"{run.arm} seed {run.seed} starts")

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Pass on what a run has stored, and why it stopped if it did."""
        run = self._run_of(trial)
        for warning in result["warnings"]:
            self._console.note(f"{run.arm} seed {run.seed}: {warning}")
        rows = result.pop("rows")  # Tune remembers the last report of every trial
        self._board.advance(
            run,
            result["epochs"],
            trained=result["trained"],
            seconds=[row["seconds"] for row in rows],
        )
        self.tracker.post(run, [read_row(row) for row in rows])
        failure = result["failure"]
        if failure and failure["kind"] == "unshared":
            self._unshared = failure["message"]
            self._left.add(run.key)
        elif failure and failure["kind"] == "stopped":
            self._left.add(run.key)
        elif failure:
            self._fail(run, attempts=trial.num_failures + 1, **failure)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Show that a run has left its slot."""
        run = self._run_of(trial)
        if run.key in self._left:
            self._board.leave(run)
            return
        failed = run.key in self.failures
        self._board.end(run, failed=failed)
        if not failed:
            self._console.change(f"{run.arm} seed {run.seed} finished")
        self._track_end(run)

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Say that a run is tried again."""
        run = self._run_of(trial)
        self._console.note(f"{run.arm} seed {run.seed} is tried again: {_last_line(trial)}")

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Record a run whose process died once too often."""
        run = self._run_of(trial)
        message = (
            f"its process failed {trial.num_failures} times; the last time: {_last_line(trial)}"
        )
        self.source.lacked_memory |= _lacked_memory(trial.get_error())
        self._fail(run, kind="failed", message=message, epoch=None, attempts=trial.num_failures)
        self._board.end(run, failed=True)
        self._track_end(run)

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Redraw, write what `mixsweep status` shows, and hear whether to stop.

        Raises:
            StoreError: If a node has another store; Tune passes on what is raised here, and here
                alone.
            KeyboardInterrupt: If the launch is to stop now, as by Ctrl-C.
        """
        if self._unshared is not None:
            raise StoreError(self._unshared)
        self._console.refresh()
        now = time.monotonic()
        if now - self._progress_at < _PROGRESS_EVERY:
            return
        self._progress_at = now
        self._board.outlook = self._outlook()
        running = [
            RunningRun(arm=run.arm, seed=run.seed, epoch=self._board.running[run.key])
            for run in (self._planned[key].run for key in self._board.running)
        ]
        with suppress(StoreError):  # a full disk must not end the runs that still have a stage
            self.lease.write_progress(running, self._board.seconds_left())
        with suppress(StoreError):
            self._hear(asked_to_stop(self.store, self.source.study.name, self.lease.holder))

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """Draw the last state."""
        self._console.close()

    def _outlook(self) -> Outlook:
        return Outlook() if self.stop is not None else self.source.outlook(self.slots)

    def _hear(self, stop: Stop | None) -> None:
        """Take note of a wish to stop.

        Raises:
            KeyboardInterrupt: If it is to stop now.
        """
        if stop is not None and self.stop is None:
            what = "no more runs start" if stop == "finish" else "running runs are left as they are"
            self._console.note(f"asked to stop: {what}")
        self.stop = stop or self.stop
        self.source.is_stopped = self.stop is not None
        if stop == "now":
            raise KeyboardInterrupt

    def _run_of(self, trial: Any) -> Run:
        return self._planned[trial.config["run_key"]].run

    def _track_end(self, run: Run) -> None:
        """Let MLflow show the end of a run, and its arm's mean over one seed more."""
        with suppress(StoreError):  # the launch ends by writing whatever MLflow then lacks
            deepest_first = self.store.read_all(reversed(stage_keys(run.config)))
            stage = next(iter(deepest_first.values()), None)
            failure = self.failures.get(run.key)
            self.tracker.reconcile([RunResult(run=run, stage=stage, failure=failure)])

    def _fail(
        self,
        run: Run,
        *,
        kind: Literal["diverged", "failed"],
        message: str,
        epoch: int | None,
        attempts: int,
    ) -> None:
        failure = Failure(
            run_key=run.key,
            kind=kind,
            message=printable(message),
            epoch=epoch,
            attempts=attempts,
        )
        self.failures[run.key] = failure
        self._console.note(f"{run.arm} seed {run.seed} {kind}: {message}")
        with suppress(
            StoreError
        ):  # kept in memory for this launch; the next one tries the run again
            self.store.failures.write(failure)


def _lacked_memory(error: object) -> bool:
    """Return whether a run's process ended for lack of memory; Ray gives the error or its text."""
    is_named = any(kind in str(error) for kind in ("OutOfMemoryError", "MemoryError"))
    return is_named or (isinstance(error, Exception) and lacks_memory(error))


def _last_line(trial: Any) -> str:
    error = trial.get_error()
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
