"""Watch: the monitor of a launch as Tune calls it, in the driver's loop."""

from typing import Any

from ray import tune

from mixup_core.problem import lacks_memory
from sweeps.running.monitor import Monitor
from sweeps.study.study import Run


class Watch(tune.Callback):  # type: ignore[misc]
    """Passes every start, report and end of a trial on to a monitor."""

    def __init__(self, monitor: Monitor) -> None:
        """Wrap a monitor."""
        self._monitor = monitor

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Show that a run has a slot."""
        self._monitor.start(self._run_of(trial))

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Pass on what a run has stored, and why it stopped if it did."""
        self._monitor.report(self._run_of(trial), result, trial.num_failures + 1)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Show that a run has left its slot."""
        self._monitor.end(self._run_of(trial))

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Say that a run is tried again."""
        run = self._run_of(trial)
        self._monitor.note(f"{run.arm} seed {run.seed} is tried again: {_last_line(trial)}")

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Record a run whose process died once too often."""
        run = self._run_of(trial)
        message = (
            f"its process failed {trial.num_failures} times; the last time: {_last_line(trial)}"
        )
        self._monitor.source.lacked_memory |= _lacked_memory(trial.get_error())
        self._monitor.fail(
            run, kind="failed", message=message, epoch=None, attempts=trial.num_failures
        )
        self._monitor.end(run)

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Let the monitor look after the launch; Tune passes on what is raised here alone."""
        self._monitor.step()

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """Draw the last state."""
        self._monitor.close()

    def _run_of(self, trial: Any) -> Run:
        return self._monitor.run_of(trial.config["run_key"])


def _lacked_memory(error: object) -> bool:
    """Return whether a run's process ended for lack of memory; Ray gives the error or its text."""
    is_named = any(kind in str(error) for kind in ("OutOfMemoryError", "MemoryError"))
    return is_named or (isinstance(error, Exception) and lacks_memory(error))


def _last_line(trial: Any) -> str:
    error = trial.get_error()
    if error is None:
        return "Ray kept no reason: the process was killed, or the disk for temporary files is full"
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
