"""Tracker: keeps MLflow up to date from a background thread, so that training never waits."""

import importlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mixup_core.addresses import scrubbed
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.machine.databases import database_address
from sweeps.state.results import RunResult, read_results
from sweeps.study.study import Run, Study
from sweeps.tracking.connection import is_final_refusal, is_refusal
from sweeps.tracking.outbox import Outbox
from sweeps.tracking.progress import LoggedEpoch, RunProgress
from sweeps.tracking.projection import Projection

SUMMARISE_EVERY = 10.0
"""Shortest time between two summaries of an arm, in seconds, because each reads all of its seeds.
"""

CLOSED_AFTER = 600.0
"""Seconds that a launch waits for MLflow at its end, at most."""

_TO_LEAVE_NONE_RUNNING = 30.0
"""Further seconds for the writes that end all runs that are still RUNNING in MLflow."""

_MAX_DESCRIPTION = 200
_AT_ONCE, _TRAINED, _SUMMARY, _FOUND, _FOUND_SUMMARY, _LAST = range(6)
"""Ranks of writes: results found in the store come late, because in a large study they are many."""

_logger = logging.getLogger(__name__)

_Item = tuple[str, str]
"""A change: `run` and its key, `arm` and its name, `report`, `model` and the key of its run, `end`,
or `load` and the name of a module."""


class Tracker:
    """Writes a study's new results to MLflow from a background thread; one per study and driver.

    Newer results of a run replace older ones that are not written yet, so a run that has ended is
    written once. If the server fails, a write is repeated until it succeeds or the tracker is
    closed (see `Outbox`). Data that MLflow rejects is dropped with a warning, because MLflow would
    reject it again; the store still has it. All data is dropped, with one warning, once the server
    turns out not to be MLflow, or the experiment to be of another program. If the driver is killed,
    the next launch writes the missing data.
    """

    def __init__(
        self,
        projection: Projection,
        *,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a tracker that is not started yet.

        Args:
            projection: Object that writes the study to MLflow. From now on, only the tracker may
                call it.
            may_write: Function called before each write; if it returns False, the write is tried
                again later.
            clock: Function that returns seconds, for `SUMMARISE_EVERY`.
        """
        self._projection = projection
        self._may_write = may_write
        self._clock = clock
        self._latest: dict[str, RunProgress] = {}
        self._shown_open: set[str] = set()
        """Keys of runs that are RUNNING in MLflow, or are being set to it."""
        self._summarised_at: dict[str, float] = {}
        self._report: tuple[Path, str] | None = None
        self._model: tuple[Run, bytes] | None = None
        self.refusal: str | None = None
        """MLflow's reason for rejecting a write; None if none was rejected."""
        self._drops_all = False
        """True once a refusal was final (`is_final_refusal`)."""
        self.backlog = 0
        """Number of results of runs and arms that were not written when `close` ended its wait,
        although MLflow could be reached; `mixsweep sync` writes them."""
        self._outbox: Outbox[_Item] = Outbox(
            self._deliver,
            name=f"MLflow at {database_address(projection.uri)}",
            describe=self._describe,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles its callbacks, and a thread cannot be pickled.

    def start(self, results: Iterable[RunResult]) -> None:
        """Queue the stored results of a study, and start the thread that writes to MLflow.

        Args:
            results: Stored results of every run of the study.
        """
        for result in results:
            self._post(RunProgress.stored(result), rank=_FOUND)
        self._outbox.start()

    def grow(self, study: Study) -> None:
        """Replace the study by a copy of it that has more arms, because a search has added points.

        Args:
            study: The study with the new arms. Their runs may be posted from now on.
        """
        self._projection.grow(study)

    def post(self, run: Run, epochs: Sequence[LoggedEpoch]) -> None:
        """Queue newly stored epochs of a run, to be written to MLflow; never waits, never raises.

        Args:
            run: The run.
            epochs: Record (metrics) and facts (training time and date) of each stored epoch.
        """
        known = self._latest.get(run.key) or RunProgress(run=run, outcome="missing")
        self._post(known.trained(epochs))

    def reconcile(self, results: Iterable[RunResult]) -> None:
        """Queue the stored results of runs that no driver is training, to be written to MLflow.

        Args:
            results: Results of these runs, as the store has them.
        """
        for result in results:
            self._post(RunProgress.stored(result))

    def log_report(self, folder: Path, note: str) -> None:
        """Queue a report, to be uploaded to MLflow.

        Args:
            folder: Folder with the report. Its files are read at the upload, not now.
            note: Markdown text for the page of the MLflow run that gets the report.
        """
        self._report = folder, note
        self._outbox.post(("report", ""), rank=_SUMMARY)

    def log_model(self, run: Run, state: bytes) -> None:
        """Queue the trained network of a finished run, to be uploaded to MLflow.

        Args:
            run: A run of a problem that trains networks.
            state: The stored training state after the last epoch of the run.
        """
        self._model = run, state
        self._outbox.post(("model", run.key), rank=_FOUND_SUMMARY)  # after its run was written

    def load_ahead(self, module: str, *, at_once: bool = False) -> None:
        """Queue the import of a module in the tracker's thread, so that the launch need not wait.

        Args:
            module: Name of the module.
            at_once: If True, the module is imported before MLflow; if False, after the stored
                results are written.
        """
        self._outbox.post(("load", module), rank=_AT_ONCE if at_once else _FOUND_SUMMARY)

    @property
    def experiment_id(self) -> str | None:
        """Id of the study's experiment in MLflow; None while MLflow was never reached."""
        return self._projection.experiment_id

    @property
    def num_waiting(self) -> int:
        """Number of results of runs and arms that are queued and not yet written to MLflow."""
        return sum(kind in {"run", "arm"} for kind, _ in self._outbox.waiting)

    def close(
        self,
        results: Iterable[RunResult],
        timeout: float = CLOSED_AFTER,
        patience: float = 10.0,
        stall: float = CLOSED_AFTER,
    ) -> bool:
        """Write all queued results to MLflow, end every RUNNING run, and stop the tracker.

        Args:
            results: Stored results of every run of the study.
            timeout: Seconds after which queued writes are dropped, except those that end runs that
                are RUNNING in MLflow.
            patience: Seconds after which a write that keeps failing is not repeated.
            stall: Seconds without a successful write after which queued writes are dropped, too.

        Returns:
            True if everything was written and MLflow rejected nothing.

        Raises:
            Exception: The error that ended the writes, if a bug in mixsweep caused one.
        """
        self.reconcile(results)
        self._outbox.post(("end", ""), rank=_LAST)
        arrived = self._outbox.finish(timeout, patience, stall)
        if not (arrived or self._outbox.is_failing):
            self.backlog = max(1, self.num_waiting)  # a write in progress is not counted
            self._leave_none_running()
        self._outbox.close(_TO_LEAVE_NONE_RUNNING, patience)
        return arrived and self.refusal is None

    def settle(self, store: Store, timeout: float = 3.0) -> None:
        """Stop writing to MLflow within seconds after an interrupt; leave no run RUNNING there.

        Other queued writes, such as results of other runs, are dropped; `mixsweep sync` writes them
        later. The interrupt may have come at any time, also during `start` and `close`.

        Args:
            store: Store of the study, from which the results of the runs in training are read.
            timeout: Seconds after which the remaining writes are dropped.
        """
        with suppress(StoreError):  # a failing store may have ended the launch
            stored = map(RunProgress.stored, read_results(self._open_ones(), store))
            self._latest.update((progress.run.key, progress) for progress in stored)
        self._leave_none_running()
        self._outbox.close(timeout, patience=1.0)

    def _open_ones(self) -> list[Run]:
        """Return the runs that are, or are becoming, RUNNING in MLflow."""
        known = list(self._latest.values())
        return [p.run for p in known if p.is_live or p.run.key in self._shown_open]

    def _leave_none_running(self) -> None:
        """Replace all waiting writes by those that end the runs that are RUNNING in MLflow."""
        open_ones = self._open_ones()
        ranks = {("run", run.key): _TRAINED for run in open_ones}
        ranks |= {("arm", run.arm): _SUMMARY for run in open_ones}
        self._outbox.replace({**ranks, ("end", ""): _LAST})

    def _post(self, progress: RunProgress, *, rank: int = _TRAINED) -> None:
        run, known = progress.run, self._latest.get(progress.run.key)
        if progress == known:
            return
        self._latest[run.key] = progress
        self._outbox.post(("run", run.key), rank=rank)
        stood = known and (known.outcome, known.is_live)
        if progress.has_ended or stood != (progress.outcome, progress.is_live):
            delay = 0.0 if rank == _FOUND else self._seconds_to_summary(run.arm)
            self._outbox.post(("arm", run.arm), rank=rank + 1, delay=delay)

    def _seconds_to_summary(self, arm: str) -> float:
        """Return the seconds until an arm may be summarised; 0 once its last seed has ended."""
        latest = map(self._latest.get, (run.key for run in self._runs_of(arm)))
        if arm not in self._summarised_at or all(known and known.has_ended for known in latest):
            return 0.0
        return max(0.0, self._summarised_at[arm] + SUMMARISE_EVERY - self._clock())

    def _runs_of(self, arm: str) -> Sequence[Run]:
        return self._projection.study.runs_of(arm)

    def _deliver(self, item: _Item) -> None:
        if self._drops_all and item[0] != "load":
            return
        try:
            self._attempt(item)
        except Exception as error:
            if not is_refusal(error):
                raise
            if is_final_refusal(error):
                self._refuse(error)
            else:
                self._attempt_again(item)

    def _refuse(self, error: Exception) -> None:
        """Record a refusal, with a warning; after a final one, all later writes are dropped."""
        reason = self._describe(error)
        self.refusal = self.refusal or reason
        self._drops_all = is_final_refusal(error)
        dropped = (
            "nothing more is written to MLflow"
            if self._drops_all
            else "MLflow refuses a write, which is dropped"
        )
        _logger.warning("%s; the store keeps the data: %s", dropped, reason)

    def _attempt(self, item: _Item) -> None:
        if not self._may_write():
            raise ConnectionError(
                "writes to MLflow wait until this driver has confirmed that it still has the lease "
                "of the study"
            )
        try:
            self._write(item)
        except Exception:
            self._projection.forget()
            raise

    def _attempt_again(self, item: _Item) -> None:
        """Repeat a rejected write once: a run may have been deleted since MLflow was last read."""
        try:
            self._attempt(item)
        except Exception as error:
            if not is_refusal(error):
                raise
            self._refuse(error)

    def _write(self, item: _Item) -> None:
        match item:
            case "run", key:
                self._shown_open.add(key)
                progress = self._latest[key]
                self._projection.reconcile_run(progress)
                if not progress.is_live:
                    self._shown_open.remove(key)
            case "arm", arm:
                seeds = [self._latest.get(run.key) for run in self._runs_of(arm)]
                self._projection.reconcile_arm(arm, [seed for seed in seeds if seed is not None])
                self._summarised_at[arm] = self._clock()
            case "report", _:
                assert self._report is not None, "a report is posted once it is there"
                self._projection.log_report(*self._report)
            case "load", module:
                importlib.import_module(module)
            case "model", _:
                assert self._model is not None, "a network is posted once it is there"
                self._projection.log_model(*self._model)
            case _:
                self._projection.settle()

    def _describe(self, error: Exception) -> str:
        """Return the start of an error's text, with secrets of the address removed."""
        uri = self._projection.uri
        return scrubbed(str(error), uri, database_address(uri))[:_MAX_DESCRIPTION]


class Untracked(Tracker):
    """A tracker that writes nothing, for launches without MLflow."""

    def __init__(self) -> None:
        """Create a tracker without a projection, so without a connection to MLflow."""
        self.refusal, self.backlog = None, 0

    def start(self, results: Iterable[RunResult]) -> None:
        """Do nothing, because this tracker writes nothing to MLflow."""

    def grow(self, study: Study) -> None:
        """Do nothing, because this tracker writes nothing to MLflow."""

    def post(self, run: Run, epochs: Sequence[LoggedEpoch]) -> None:
        """Do nothing, because this tracker writes nothing to MLflow."""

    def reconcile(self, results: Iterable[RunResult]) -> None:
        """Do nothing, because this tracker writes nothing to MLflow."""

    def log_report(self, folder: Path, note: str) -> None:
        """Do nothing, because this tracker writes nothing to MLflow."""

    def log_model(self, run: Run, state: bytes) -> None:
        """Do nothing, because this tracker writes nothing to MLflow."""

    def load_ahead(self, module: str, *, at_once: bool = False) -> None:
        """Do nothing: without MLflow, the main thread imports modules when it needs them."""

    @property
    def experiment_id(self) -> str | None:
        """Always None: this tracker writes nothing to MLflow."""
        return None

    @property
    def num_waiting(self) -> int:
        """Zero, because this tracker writes nothing to MLflow."""
        return 0

    def close(
        self,
        results: Iterable[RunResult],
        timeout: float = CLOSED_AFTER,
        patience: float = 10.0,
        stall: float = CLOSED_AFTER,
    ) -> bool:
        """Return False, because this tracker writes nothing to MLflow."""
        del results, timeout, patience, stall
        return False

    def settle(self, store: Store, timeout: float = 3.0) -> None:
        """Do nothing, because this tracker writes nothing to MLflow."""
