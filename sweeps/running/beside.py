"""Beside: runs one task at a time in a thread, while the caller continues."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Beside(Generic[T]):
    """Runs a task in a thread, one at a time; `take` returns its result or raises its error.

    The thread does not keep the process alive: a process that exits stops the task half-way.
    """

    def __init__(self) -> None:
        self._future: Future[T] | None = None

    @property
    def is_busy(self) -> bool:
        """True from the start of a task until `take` returns its result or raises its error."""
        return self._future is not None

    def start(self, task: Callable[[], T]) -> None:
        assert not self.is_busy
        self._future = future = Future[T]()
        Thread(target=_run, args=(task, future), name="beside", daemon=True).start()

    def take(self, *, timeout: float | None) -> T | None:
        """Return the result of the task; None if there is no task, or it is still running."""
        future = self._future
        if future is None or not wait([future], timeout).done:
            return None
        self._future = None
        return future.result()


def _run(task: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(task())
    except BaseException as error:  # raised again by `take`
        future.set_exception(error)
