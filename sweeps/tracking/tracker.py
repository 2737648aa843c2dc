"""Tracker: a projection written by a background thread, so that training never waits for MLflow."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, assert_never

from sweeps.home import masked
from sweeps.results import RunResult
from sweeps.study import Run, Study
from sweeps.tracking.experiment import is_refusal
from sweeps.tracking.outbox import Outbox
from sweeps.tracking.projection import Epoch, Projection

_MAX_DESCRIPTION = 200
_PART = 20
"""Runs of the backlog that are written between two looks at what else is waiting."""

_logger = logging.getLogger(__name__)

Write = Callable[[], object]


@dataclass(frozen=True, slots=True)
class _Stored:
    run: Run
    epochs: tuple[Epoch, ...]


@dataclass(frozen=True, slots=True)
class _Ended:
    result: RunResult


@dataclass(frozen=True, slots=True)
class _Backlog:
    """What a launch found in the store: all of a large study, so whatever else waits goes first."""

    results: tuple[RunResult, ...]
    begin: int = 0

    @property
    def end(self) -> int:
        return self.begin + _PART


@dataclass(frozen=True, slots=True)
class _Call:
    write: Write


_Post = _Stored | _Ended | _Backlog | _Call


class Tracker:
    """Writes a projection from a background thread: the driver's, one per study.

    A failing server is tried again for as long as the tracker lives (see `Outbox`). What MLflow
    refuses although it is reachable would be refused for ever: it is dropped with a warning, and
    is still in the store. A killed driver loses what is queued; the next `start` writes it.
    """

    def __init__(
        self, projection: Projection, *, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        """Take over a projection: from here on only the tracker's thread calls it.

        Args:
            projection: What is written.
            may_write: Asked before each write; what it forbids is tried again later.
        """
        self._projection = projection
        self._may_write = may_write
        self._has_dropped = False
        self._outbox: Outbox[_Post] = Outbox(
            self._deliver,
            name=f"MLflow at {masked(projection.uri)}",
            describe=self._describe,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {}  # TRAP 4: Tune pickles its callbacks, and a thread cannot be pickled.

    def start(self, results: Iterable[RunResult]) -> None:
        """Begin to write: the database and the experiment first, then what the store holds.

        Args:
            results: Of every run of the study.
        """
        self._outbox.start()
        results = tuple(results)
        self._outbox.post(_Call(partial(self._projection.note, results)))
        self._outbox.post(_Backlog(results))

    def grow(self, study: Study) -> None:
        """Queue `Projection.grow`: what is posted from here on may be of the new arms."""
        self._outbox.post(_Call(partial(self._projection.grow, study)))

    def post(self, run: Run, epochs: Sequence[Epoch]) -> None:
        """Queue newly stored epochs of a run; never waits, never raises."""
        self._outbox.post(_Stored(run, tuple(epochs)))

    def end(self, result: RunResult) -> None:
        """Queue `Projection.end` of a run, read from the store after its last epoch was posted."""
        self._outbox.post(_Ended(result))

    def reconcile(self, results: Iterable[RunResult]) -> None:
        """Queue `Projection.reconcile`.

        Args:
            results: Read from the store after the last epoch of these runs was posted.
        """
        self._outbox.post(_Call(partial(self._projection.reconcile, tuple(results))))

    def log_report(self, folder: Path, note: str) -> None:
        """Queue `Projection.log_report`; the folder is read when the time comes."""
        self._outbox.post(_Call(partial(self._projection.log_report, folder, note)))

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
        self._outbox.post(_Call(self._projection.settle))
        return self._outbox.close(timeout, patience) and not self._has_dropped

    def _deliver(self, items: Sequence[_Post]) -> None:
        for write in self._writes(items):
            try:
                self._attempt(write)
            except Exception as error:
                if not is_refusal(error):
                    raise
                self._attempt_again(write)

    def _writes(self, items: Sequence[_Post]) -> Iterator[Write]:
        """Yield, between two calls, one write for all epochs of a run, then the ends.

        None for the epochs of a run that is complete by then, for its end writes them all.
        """
        stored: dict[str, tuple[Run, list[Epoch]]] = {}
        ended: dict[str, RunResult] = {}
        backlog: list[_Backlog] = []
        for item in items:
            match item:
                case _Stored(run=run, epochs=epochs):
                    stored.setdefault(run.key, (run, []))[1].extend(epochs)
                case _Ended(result=result):
                    if result.outcome == "complete":
                        stored.pop(result.run.key, None)
                    ended[result.run.key] = result
                case _Backlog():
                    backlog.append(item)
                case _Call(write=write):
                    yield from self._waiting(stored.values(), ended.values())
                    stored, ended = {}, {}
                    yield write
                case _:
                    assert_never(item)
        yield from self._waiting(stored.values(), ended.values())
        for part in backlog:
            yield partial(self._projection.catch_up, part.results[part.begin : part.end])
        yield self._projection.summarise
        for part in backlog:  # last, for what fails before is delivered again as a whole
            if part.end < len(part.results):
                yield partial(self._outbox.post, replace(part, begin=part.end))

    def _waiting(
        self, stored: Iterable[tuple[Run, list[Epoch]]], ended: Iterable[RunResult]
    ) -> Iterator[Write]:
        for run, epochs in stored:
            yield partial(self._projection.write_epochs, run, epochs)
        for result in ended:
            yield partial(self._projection.end, result)

    def _attempt(self, write: Write) -> None:
        if not self._may_write():
            raise ConnectionError("the lease of the study is not confirmed")
        try:
            write()
        except Exception:
            self._projection.forget()
            raise

    def _attempt_again(self, write: Write) -> None:
        """Write what was refused once: a run may have been deleted since MLflow was last read."""
        try:
            self._attempt(write)
        except Exception as error:
            if not is_refusal(error):
                raise
            self._has_dropped = True
            _logger.warning("MLflow refuses a write, which is dropped: %s", self._describe(error))

    def _describe(self, error: Exception) -> str:
        """Return the head of an error's text, without the password that the address may hold."""
        uri = self._projection.uri
        return str(error).replace(uri, masked(uri))[:_MAX_DESCRIPTION]
