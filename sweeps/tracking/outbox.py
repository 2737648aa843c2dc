"""Outbox: items delivered in order by a background thread, so that nobody waits for a server."""

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

_RETRY_WHEN_CLOSING = 0.5
"""Seconds between two tries while somebody waits for the end."""

_MISTAKES = (AssertionError, AttributeError, LookupError, NameError, TypeError)
"""No server raises these, and whoever calls one wraps what it answers."""

_logger = logging.getLogger(__name__)


class Outbox(Generic[Item]):
    """Accepts items at any time and delivers them in the order of posting.

    What was posted while a delivery was under way goes out together in the next one. A delivery
    that fails is repeated, whole, until it succeeds or the outbox is closed: an outage loses
    nothing and is reported by one warning, its end by another. A mistake of this program would be
    made again: it ends the outbox, is logged, and is raised by `close`. A process that is killed
    loses what it has not delivered.
    """

    def __init__(
        self,
        deliver: Callable[[Sequence[Item]], None],
        *,
        name: str,
        describe: Callable[[Exception], str] = str,
        retry_after: float = 1.0,
        retry_at_most: float = 30.0,
    ) -> None:
        """Describe the outbox; nothing is delivered before `start`.

        Args:
            deliver: Delivers one or more items or raises; repeating a delivery must be harmless.
                Called from one thread only.
            name: What the items are delivered to, for warnings.
            describe: Text of an error in a warning.
            retry_after: Seconds from a failure to the next try; they double with every failure.
            retry_at_most: Limit of that doubling, in seconds.
        """
        self._deliver = deliver
        self._name = name
        self._describe = describe
        self._retry_after = retry_after
        self._retry_at_most = retry_at_most
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._patient_until = math.inf
        self._abandoned = threading.Event()
        self._mistake: Exception | None = None
        # A daemon, or a hanging server would keep the process alive after an unsuccessful close.
        self._thread = threading.Thread(target=self._run, name=f"outbox {name}", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def post(self, item: Item) -> None:
        """Add an item; never waits, never raises."""
        self._queue.put(item)

    def close(self, timeout: float, patience: float = math.inf) -> bool:
        """Deliver what is left and end the thread; return whether everything was delivered.

        Args:
            timeout: Seconds after which what is left is given up, even if it is being delivered.
            patience: Seconds after which a delivery that fails is not tried again.

        Raises:
            Exception: The mistake of this program that ended the outbox.
        """
        self._queue.put(None)
        self._patient_until = time.monotonic() + patience
        self._closing.set()
        self._thread.join(timeout)
        arrived = not (self._thread.is_alive() or self._abandoned.is_set())
        self._abandoned.set()
        if self._mistake is not None:
            raise self._mistake
        return arrived

    def _run(self) -> None:
        try:
            self._deliver_posts()
        except _MISTAKES as mistake:
            self._mistake = mistake
            _logger.exception("%s: nothing more is delivered: a mistake of ours", self._name)

    def _deliver_posts(self) -> None:
        is_open = True
        while is_open:
            waiting = [self._queue.get()]
            while not self._queue.empty():
                waiting.append(self._queue.get())
            is_open = None not in waiting
            items = [item for item in waiting if item is not None]
            if items:
                self._deliver_until_accepted(items)

    def _deliver_until_accepted(self, items: Sequence[Item]) -> None:
        pause = self._retry_after
        is_out = False
        while not self._abandoned.is_set():
            try:
                self._deliver(items)
            except _MISTAKES:
                raise
            except Exception as error:
                if not is_out:
                    is_out = True
                    reason = self._describe(error)
                    _logger.warning("%s: does not accept, will retry: %s", self._name, reason)
                if time.monotonic() >= self._patient_until:
                    self._abandoned.set()
                self._wait(pause)
                pause = min(2 * pause, self._retry_at_most)
            else:
                if is_out:
                    _logger.warning("%s: accepts again", self._name)
                return

    def _wait(self, seconds: float) -> None:
        """Wait for the next try; closing cuts the wait short and makes later ones short."""
        if self._closing.is_set():
            self._abandoned.wait(min(self._retry_after, _RETRY_WHEN_CLOSING))
        else:
            self._closing.wait(seconds)
