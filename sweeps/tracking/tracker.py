"""Tracker: a projection kept up to date by a background thread: training never waits for MLflow."""

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
from sweeps.tracking.experiment import is_refusal
from sweeps.tracking.outbox import Outbox
from sweeps.tracking.progress import LoggedEpoch, RunProgress
from sweeps.tracking.projection import Projection

SUMMARISE_EVERY = 10.0
"""Seconds between two summaries of an arm whose seeds end one after the other: each looks at all of
them."""

_MAX_DESCRIPTION = 200
_AT_ONCE, _TRAINED, _SUMMARY, _FOUND, _FOUND_SUMMARY, _LAST = range(6)
"""Ranks: what a launch found in the store is all of a large study, so whatever else waits goes
first."""

_logger = logging.getLogger(__name__)

_Item = tuple[str, str]
"""A change: `run` and its key, `arm` and its name, `report`,
`model` and the key of its run, or `end`; or `load` and the name of a module."""


class Tracker:
    """Brings MLflow to the latest that is known of a study's runs: the driver's, one per study.

    Whoever posts says what is known now; what was known before and has not been written is
    forgotten, so a run that has ended is written once. A failing server is tried again for as long
    as the tracker lives (see `Outbox`). What MLflow refuses although it is reachable would be
    refused for ever: it is dropped with a warning, and is still in the store. A killed driver loses
    what waits; the next `start` writes it.
    """

    def __init__(
        self,
        projection: Projection,
        *,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take over a projection: from here on only the tracker calls it.

        Args:
            projection: What is written.
            may_write: Asked before each write; what it forbids is tried again later.
            clock: Seconds, for `SUMMARISE_EVERY`.
        """
        self._projection = projection
        self._may_write = may_write
        self._clock = clock
        self._latest: dict[str, RunProgress] = {}
        self._shown_open: set[str] = set()
        """Keys of runs that are, or are being made, RUNNING in MLflow."""
        self._summarised_at: dict[str, float] = {}
        self._report: tuple[Path, str] | None = None
        self._model: tuple[Run, bytes] | None = None
        self.refusal: str | None = None
        """Reason why MLflow refused a write although it was reached; None without a refusal."""
        self._outbox: Outbox[_Item] = Outbox(
            self._deliver,
            name=f"MLflow at {database_address(projection.uri)}",
            describe=self._describe,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles its callbacks, and a thread cannot be pickled.

    def start(self, results: Iterable[RunResult]) -> None:
        """Begin to write what the store holds, unless something newer of it is posted.

        Args:
            results: Of every run of the study.
        """
        for result in results:
            self._post(RunProgress.stored(result), rank=_FOUND)
        self._outbox.start()

    def grow(self, study: Study) -> None:
        """Go on with a study that has gained arms: what is posted from here on may be of them."""
        self._projection.grow(study)

    def post(self, run: Run, epochs: Sequence[LoggedEpoch]) -> None:
        """Say which epochs of a run in training were stored; never waits, never raises."""
        known = self._latest.get(run.key) or RunProgress(run=run, outcome="missing")
        self._post(known.trained(epochs))

    def reconcile(self, results: Iterable[RunResult]) -> None:
        """Send the stored progress of runs that no driver trains now."""
        for result in results:
            self._post(RunProgress.stored(result))

    def log_report(self, folder: Path, note: str) -> None:
        """Attach a report to the study; the folder is read when the time comes."""
        self._report = folder, note
        self._outbox.post(("report", ""), rank=_SUMMARY)

    def log_model(self, run: Run, state: bytes) -> None:
        """Give a finished run of the study its trained network.

        Args:
            run: Of a problem that trains networks.
            state: Its last state.
        """
        self._model = run, state
        self._outbox.post(("model", run.key), rank=_FOUND_SUMMARY)  # after its run is there

    def load_ahead(self, module: str, *, at_once: bool = False) -> None:
        """Import what a launch will need, in the thread that imports MLflow: one after the other.

        Args:
            module: Its name.
            at_once: Whether that is soon: before MLflow, not once what was found is written.
        """
        self._outbox.post(("load", module), rank=_AT_ONCE if at_once else _FOUND_SUMMARY)

    def close(
        self, results: Iterable[RunResult], timeout: float = 600.0, patience: float = 10.0
    ) -> bool:
        """Write what is left, leave no run RUNNING, and return whether all of it arrived.

        Args:
            results: As for `start`.
            timeout: Seconds after which what is left is given up; a large study takes a minute.
            patience: Seconds after which a server that does not accept is given up.

        Raises:
            Exception: What this program did wrong while it wrote (see `Outbox.close`).
        """
        self.reconcile(results)
        self._outbox.post(("end", ""), rank=_LAST)
        return self._outbox.close(timeout, patience) and self.refusal is None

    def settle(self, store: Store, timeout: float = 3.0) -> None:
        """End within seconds, after an interrupt: no run stays RUNNING, the rest is left to `sync`.

        The interrupt may have come at any time, within `start` and `close` too.

        Args:
            store: What it holds of the runs that were in training is written.
            timeout: Seconds after which what is left is given up.
        """
        known = list(self._latest.values())
        open_ones = [p.run for p in known if p.is_live or p.run.key in self._shown_open]
        with suppress(StoreError):  # it may be what ended the launch
            stored = map(RunProgress.stored, read_results(open_ones, store))
            self._latest.update((progress.run.key, progress) for progress in stored)
        ranks = {("run", run.key): _TRAINED for run in open_ones}
        ranks |= {("arm", run.arm): _SUMMARY for run in open_ones}
        self._outbox.replace({**ranks, ("end", ""): _LAST})
        self._outbox.close(timeout, patience=1.0)

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
        """Return how long the summary of an arm waits: not at all once its last seed has ended."""
        latest = map(self._latest.get, (run.key for run in self._runs_of(arm)))
        if arm not in self._summarised_at or all(known and known.has_ended for known in latest):
            return 0.0
        return max(0.0, self._summarised_at[arm] + SUMMARISE_EVERY - self._clock())

    def _runs_of(self, arm: str) -> Sequence[Run]:
        return self._projection.study.runs_of(arm)

    def _deliver(self, item: _Item) -> None:
        try:
            self._attempt(item)
        except Exception as error:
            if not is_refusal(error):
                raise
            self._attempt_again(item)

    def _attempt(self, item: _Item) -> None:
        if not self._may_write():
            raise ConnectionError("the lease of the study is not confirmed")
        try:
            self._write(item)
        except Exception:
            self._projection.forget()
            raise

    def _attempt_again(self, item: _Item) -> None:
        """Write what was refused once: a run may have been deleted since MLflow was last read."""
        try:
            self._attempt(item)
        except Exception as error:
            if not is_refusal(error):
                raise
            self.refusal = self.refusal or self._describe(error)
            _logger.warning("MLflow refuses a write, which is dropped: %s", self._describe(error))

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
        """Return the head of an error's text, with no secret that the address may hold."""
        uri = self._projection.uri
        return scrubbed(str(error), uri, database_address(uri))[:_MAX_DESCRIPTION]


class Untracked(Tracker):
    """Stands in for a tracker where MLflow is not installed: accepts everything, writes nothing."""

    def __init__(self) -> None:
        """Take over nothing."""
        self.refusal = None

    def start(self, results: Iterable[RunResult]) -> None:
        """Do nothing."""

    def grow(self, study: Study) -> None:
        """Do nothing."""

    def post(self, run: Run, epochs: Sequence[LoggedEpoch]) -> None:
        """Do nothing."""

    def reconcile(self, results: Iterable[RunResult]) -> None:
        """Do nothing."""

    def log_report(self, folder: Path, note: str) -> None:
        """Do nothing."""

    def log_model(self, run: Run, state: bytes) -> None:
        """Do nothing."""

    def load_ahead(self, module: str, *, at_once: bool = False) -> None:
        """Do nothing: the main thread imports what it needs."""

    def close(
        self, results: Iterable[RunResult], timeout: float = 600.0, patience: float = 10.0
    ) -> bool:
        """Return False, since nothing is tracked."""
        del results, timeout, patience
        return False

    def settle(self, store: Store, timeout: float = 3.0) -> None:
        """Do nothing."""
