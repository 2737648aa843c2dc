"""Tracker: a background thread writes new results to MLflow, so that training never waits."""

import importlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mixup_core.addresses import reason
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.machine.databases import database_address
from sweeps.state.results import RunResult, read_results
from sweeps.study.study import Run, Study
from sweeps.tracking.connection import FinalRefusalError, is_refusal
from sweeps.tracking.rows import LoggedEpoch, RunProgress
from sweeps.tracking.study_log import StudyLog

_CLOSED_AFTER = 600.0
"""Seconds that a launch waits for MLflow at its end, at most."""
_TO_LEAVE_NONE_RUNNING = 30.0
"""Further seconds for the writes that end all runs that are still RUNNING in MLflow."""
_PAUSES = (1.0, 30.0)
"""First and longest pause between two tries, in seconds; a pause doubles after every failure."""
_PAUSE_WHEN_CLOSING = 0.5
_MAX_DESCRIPTION = 200
_MISTAKES = (AssertionError, AttributeError, LookupError, NameError, TypeError)
"""Errors that can only come from bugs in mixsweep, because MLflow wraps those of a server."""

_NEWS, _SUMMARIES, _FOUND, _FOUND_SUMMARIES = range(4)
"""Turns of items: results found in the store come last, because a large study has many."""

_logger = logging.getLogger(__name__)

_Item = tuple[str, str]
"""Content to write: `run` and its key, `arm` and its name, `report`, `model`, or `anew`; or
`load` and the name of a module to import."""


class Tracker:
    """Writes a study's results to MLflow from a background thread; one per study and driver.

    The queue has names of what changed, and the newest results are written when an item's turn
    comes: a run that ends while MLflow is away is written once. A failed write is repeated until it
    succeeds or the tracker is closed; what MLflow rejects is dropped with a warning. Whatever is
    missing at the end, also after a kill, the next launch or `mixsweep sync` writes from the store.
    """

    def __init__(
        self, log: StudyLog | None, *, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        self._log, self._may_write = log, may_write
        self.trouble = None if log is not None else "MLflow is not installed"
        """Reason why MLflow lacks results once the tracker is closed; None if it has all."""
        self.was_refused = False
        """True if MLflow rejected a write."""
        self.on_epochs: Callable[[Run, Sequence[LoggedEpoch]], object] = lambda *_: None
        """Function of the caller of a launch; called with new epochs before they are queued."""
        self._latest: dict[str, RunProgress] = {}
        self._shown_open: set[_Item] = set()
        """Runs and arms that are RUNNING in MLflow, or are being set to it."""
        self._report: tuple[Path, str] | None = None
        self._model: tuple[Run, bytes] | None = None
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._queues = tuple(OrderedDict[_Item, None]() for _ in range(4))
        """Items that are not yet written, by turn. To take one costs the same for any number."""
        self._is_busy = self._is_over = False
        self._drops_all = False
        """True once a refusal was final (`FinalRefusalError`)."""
        self._failing_from: float | None = None
        self._address = database_address("" if log is None else log.uri)
        self._mistake: Exception | None = None
        # A daemon, because otherwise a hanging server would keep the process alive after `close`.
        self._thread = threading.Thread(target=self._run, name="tracker", daemon=True)

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles its callbacks, and a thread cannot be pickled.

    def start(self, results: Iterable[RunResult], *, anew: bool = False) -> None:
        """Queue the stored results of a study, and start the thread that writes to MLflow."""
        if anew:
            self._post(("anew", ""))
        for result in results:
            self._show(RunProgress.stored(result), turn=_FOUND)
        if self._log is not None:
            self._thread.start()

    def grow(self, study: Study) -> None:
        """Replace the study by a copy of it that has more arms, because a search added points."""
        if self._log is not None:
            self._log.study = study

    def post(self, run: Run, epochs: Sequence[LoggedEpoch]) -> None:
        """Queue newly stored epochs of a run (metrics, time and date); never waits."""
        self.on_epochs(run, epochs)
        progress = self._latest.get(run.key) or RunProgress(run=run, outcome="missing")
        self._show(progress.trained(epochs))

    def reconcile(self, results: Iterable[RunResult]) -> None:
        """Queue the stored results of runs that no driver is training, to be written to MLflow."""
        for result in results:
            self._show(RunProgress.stored(result))

    def log_report(self, folder: Path, note: str) -> None:
        self._report = folder, note
        self._post(("report", ""))

    def log_model(self, run: Run, state: bytes) -> None:
        """Queue the upload of the network of a finished run, from its stored training state."""
        self._model = run, state
        self._post(("model", run.key), turn=_FOUND_SUMMARIES)  # after its run was written

    def load_ahead(self, module: str, *, at_once: bool = False) -> None:
        """Queue the import of a module: before MLflow, or after the stored results."""
        self._post(("load", module), turn=_NEWS if at_once else _FOUND_SUMMARIES)

    @property
    def num_waiting(self) -> int:
        with self._changed:
            return sum(kind in {"run", "arm"} for queue in self._queues for kind, _ in queue)

    def close(
        self, results: Iterable[RunResult], timeout: float = _CLOSED_AFTER, patience: float = 10.0
    ) -> None:
        """Write all that is queued, end RUNNING runs, and stop; `trouble` says what is missing."""
        self.reconcile(results)
        if not self._finish(timeout, patience):
            self.trouble = self.trouble or f"{self.num_waiting or 1} results were not written"
            self._leave_none_running()
            self._finish(_TO_LEAVE_NONE_RUNNING, patience)
        self._stop()
        if self._mistake is not None:
            raise self._mistake

    def settle(self, store: Store, timeout: float = 3.0) -> None:
        """Stop within seconds after an interrupt, at any time; leave no run RUNNING."""
        with suppress(StoreError):  # a failing store may have ended the launch
            stored = map(RunProgress.stored, read_results(self._open_ones(), store))
            self._latest.update((progress.run.key, progress) for progress in stored)
        self._leave_none_running()
        self._finish(timeout, patience=1.0)
        self._stop()

    def _open_ones(self) -> list[Run]:
        """Return the runs that are, or are becoming, RUNNING in MLflow."""
        latest = list(self._latest.values())
        return [p.run for p in latest if p.is_live or ("run", p.run.key) in self._shown_open]

    def _leave_none_running(self) -> None:
        """Replace all waiting writes by those that end the runs that are RUNNING in MLflow."""
        runs = self._open_ones()
        items = [("run", run.key) for run in runs] + [("arm", run.arm) for run in runs]
        items += [item for item in tuple(self._shown_open) if item[0] == "arm"]
        with self._changed:
            for queue in self._queues:
                queue.clear()
            self._queues[_NEWS].update(dict.fromkeys(items))
            self._changed.notify_all()

    def _show(self, progress: RunProgress, *, turn: int = _NEWS) -> None:
        run, known = progress.run, self._latest.get(progress.run.key)
        if progress == known:
            return
        self._latest[run.key] = progress
        self._post(("run", run.key), turn=turn)
        if known is None or (known.outcome, known.is_live) != (progress.outcome, progress.is_live):
            self._post(("arm", run.arm), turn=turn + 1)

    def _post(self, item: _Item, *, turn: int = _NEWS) -> None:
        if self._log is None or self._is_over:
            return
        with self._changed:
            for place, queue in enumerate(self._queues):
                if item in queue:
                    turn = min(turn, place)
                    del queue[item]
            self._queues[turn][item] = None
            self._changed.notify_all()

    def _finish(self, timeout: float, patience: float) -> bool:
        """Wait until the queue is empty; return False if time or patience run out before."""
        began = time.monotonic()
        self._closing.set()
        with self._changed:
            while (any(self._queues) or self._is_busy) and self._thread.is_alive():
                now = time.monotonic()
                last = began + timeout
                if self._failing_from is not None:
                    last = min(last, max(self._failing_from, began) + patience)
                if now >= last:
                    return False
                self._changed.wait(min(_PAUSE_WHEN_CLOSING, last - now))
            return not any(self._queues)

    def _stop(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _run(self) -> None:
        pause, longest = _PAUSES
        while (item := self._next()) is not None:
            try:
                self._deliver(item)
            except _MISTAKES as mistake:
                self._mistake = mistake
                _logger.exception("a bug in mixsweep; nothing more is written to MLflow")
                break
            except Exception as error:
                self._fail(item, error)
                if self._closing.wait(pause):
                    time.sleep(_PAUSE_WHEN_CLOSING)
                pause = min(2 * pause, longest)
            else:
                pause = _PAUSES[0]
                if self._failing_from is not None:
                    self._failing_from = None
                    _logger.warning("MLflow at %s: writes succeed again", self._address)
        with self._changed:
            self._is_busy = False
            self._changed.notify_all()

    def _next(self) -> _Item | None:
        """Wait for an item and return it; None once the tracker is stopped."""
        with self._changed:
            self._is_busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: any(self._queues) or self._is_over)
            if self._is_over:
                return None
            item, _ = next(filter(None, self._queues)).popitem(last=False)
            self._is_busy = True
            return item

    def _deliver(self, item: _Item) -> None:
        """Import or write an item; drop what MLflow refuses again after it was read anew."""
        if item[0] == "load":
            importlib.import_module(item[1])
            return
        assert self._log is not None, "without MLflow nothing is queued"
        for is_last in (False, True):  # a run may have been deleted since MLflow was last read
            if self._drops_all:
                return
            if not self._may_write():
                raise ConnectionError(
                    "writes to MLflow wait until this driver has confirmed that it still has the "
                    "lease of the study"
                )
            try:
                self._write(item, self._log)
            except Exception as error:
                self._log.forget()
                if not is_refusal(error):
                    raise
                if is_last or isinstance(error, FinalRefusalError):
                    self._drop(error)
            else:
                return

    def _drop(self, error: Exception) -> None:
        cause = self._describe(error)
        self.trouble = self.trouble or f"MLflow rejected some of the results: {cause}"
        self.was_refused, self._drops_all = True, isinstance(error, FinalRefusalError)
        dropped = (
            "nothing more is written to MLflow"
            if self._drops_all
            else "MLflow refuses a write, which is dropped"
        )
        _logger.warning("%s; the store keeps the data: %s", dropped, cause)

    def _write(self, item: _Item, log: StudyLog) -> None:
        match item:
            case "run", key:
                progress = self._latest[key]
                self._shown_open |= {item, ("arm", progress.run.arm)}  # which it may create
                log.write_run(progress)
                if not progress.is_live:
                    self._shown_open.discard(item)
            case "arm", arm:
                seeds = [self._latest.get(run.key) for run in log.study.runs_of(arm)]
                log.write_arm(arm, [seed for seed in seeds if seed is not None])
                self._shown_open.discard(item)
            case "report", _:
                assert self._report is not None, "a report is posted once it is there"
                log.write_report(*self._report)
            case "model", _:
                assert self._model is not None, "a network is posted once it is there"
                log.write_network(*self._model)
            case _:
                log.delete_all()

    def _fail(self, item: _Item, error: Exception) -> None:
        with self._changed:
            for queue in self._queues:
                queue.pop(item, None)
            self._queues[_NEWS][item] = None
            self._queues[_NEWS].move_to_end(item, last=False)
        if self._failing_from is None:
            self._failing_from = time.monotonic()
            _logger.warning(
                "MLflow at %s: a write failed and is repeated: %s",
                self._address, self._describe(error),
            )  # fmt: skip

    def _describe(self, error: Exception) -> str:
        """Return the start of an error's text; its type if the address of MLflow has a secret."""
        return reason(error, self._address)[:_MAX_DESCRIPTION]
