"""Outbox: a background thread sends items to a server, so that training never waits for it."""

import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)

_RETRY_WHEN_CLOSING = 0.5
"""Seconds between two tries while the launch waits for the outbox to close."""

_LOOK_EVERY = 0.5
"""Seconds between two checks of whether a closing outbox still delivers."""

_MISTAKES = (AssertionError, AttributeError, LookupError, NameError, TypeError)
"""Errors that can only come from bugs in mixsweep, because callers wrap a server's errors."""

_logger = logging.getLogger(__name__)


class Outbox(Generic[Item]):
    """Queue of distinct items that a background thread delivers to a server, one by one.

    Items of a lower rank are delivered first, and items of equal rank in the order of posting. An
    item only names the data that changed; the data is looked up at delivery, so an item that is
    posted again while it waits is delivered once. A failed delivery is repeated until it succeeds
    or the outbox is closed: an outage loses nothing, and one warning reports its start and one its
    end. An error that only a bug in mixsweep can cause is not retried: it is logged, ends the
    outbox, and is raised by `finish` and `close`. If the process is killed, undelivered items are
    lost.
    """

    def __init__(
        self,
        deliver: Callable[[Item], None],
        *,
        name: str,
        describe: Callable[[Exception], str] = str,
        retry_after: float = 1.0,
        retry_at_most: float = 30.0,
    ) -> None:
        """Create the outbox; nothing is delivered before `start`.

        Args:
            deliver: Function that delivers an item, or raises an error. It is called in the
                outbox's thread only, and called again after an error, so it must be safe to repeat.
            name: Name of the destination, for warnings.
            describe: Function that returns the text of an error for a warning.
            retry_after: Seconds between a failure and the next try; doubled after every failure.
            retry_at_most: Upper limit of that time, in seconds.
        """
        self._deliver = deliver
        self._name = name
        self._describe = describe
        self._retry_after = retry_after
        self._retry_at_most = retry_at_most
        self._changed = threading.Condition()
        self._waiting: dict[int, dict[Item, float]] = {}
        """Earliest time of delivery by item, by rank; empty ranks are absent."""
        self._idle = threading.Event()
        self._idle.set()
        self._closing = threading.Event()
        self._patience = self._patient_from = math.inf
        self._abandoned = threading.Event()
        self._mistake: Exception | None = None
        self._num_delivered = 0
        self.is_failing = False
        """True from a failed delivery until one succeeds."""
        # A daemon, because otherwise a hanging server would keep the process alive after `close`.
        self._thread = threading.Thread(target=self._run, name=f"outbox {name}", daemon=True)

    def start(self) -> None:
        """Start the thread that delivers the queued items."""
        self._idle.clear()
        self._thread.start()

    def post(self, item: Item, *, rank: int = 0, delay: float = 0.0) -> None:
        """Add an item to the queue, without waiting for its delivery; never raises.

        Args:
            item: If it is in the queue already, the lower rank and the earlier time apply.
            rank: Items of a lower rank are delivered first.
            delay: Seconds before the item is delivered, unless the outbox is closed.
        """
        due = time.monotonic() + delay
        with self._changed:
            for before, items in list(self._waiting.items()):
                if item in items:
                    rank, due = min(rank, before), min(due, items[item])
                    if rank == before:
                        items[item] = due
                        break
                    self._remove(item, before)
            else:
                self._waiting.setdefault(rank, {})[item] = due
            self._changed.notify()

    def replace(self, ranks: Mapping[Item, int]) -> None:
        """Replace all items of the queue by new ones, which are delivered without delay.

        Args:
            ranks: Rank of each new item, by item; items of a lower rank are delivered first.
        """
        with self._changed:
            self._waiting.clear()
            for item, rank in ranks.items():
                self._waiting.setdefault(rank, {})[item] = -math.inf
            self._changed.notify()

    @property
    def waiting(self) -> tuple[Item, ...]:
        """The items that wait in the queue; an item that is being delivered is not among them."""
        with self._changed:
            return tuple(item for items in self._waiting.values() for item in items)

    def finish(self, timeout: float, patience: float = math.inf, stall: float = math.inf) -> bool:
        """Wait until all queued items, also delayed ones, are delivered; return True if they are.

        If the wait ends early, the thread goes on delivering until `close` is called.

        Args:
            timeout: Seconds after which the wait ends.
            patience: Seconds after which a delivery that keeps failing is not repeated.
            stall: Seconds without a delivery after which the wait ends.

        Raises:
            Exception: The error that ended the outbox, if a bug in mixsweep caused one.
        """
        now = time.monotonic()
        until, stalled_at, seen = now + timeout, now + stall, self._num_delivered
        self._patience, self._patient_from = patience, now
        with self._changed:
            self._closing.set()
            self._changed.notify()
        # Until Python 3.13 a thread whose `join` was interrupted once counts as ended.
        while not self._idle.wait(max(0.0, min(_LOOK_EVERY, until - now))):
            now = time.monotonic()
            if seen != self._num_delivered:
                seen, stalled_at = self._num_delivered, now + stall
            if now >= min(until, stalled_at):
                break
        if self._mistake is not None:
            self._abandoned.set()
            raise self._mistake
        return self._idle.is_set() and not (self._waiting or self._abandoned.is_set())

    def close(self, timeout: float, patience: float = math.inf) -> bool:
        """Deliver queued items for a limited time, drop those that are left, and stop the thread.

        This method does not wait for a delivery that is still in progress when the time is over.

        Args:
            timeout: Seconds after which the wait ends.
            patience: Seconds after which a delivery that keeps failing is not repeated.

        Returns:
            True if all items were delivered.

        Raises:
            Exception: The error that ended the outbox, if a bug in mixsweep caused one.
        """
        arrived = self.finish(timeout, patience)
        self._abandoned.set()
        return arrived

    def _run(self) -> None:
        try:
            while (item := self._take()) is not None:
                self._deliver_until_accepted(item)
        except _MISTAKES as mistake:
            self._mistake = mistake
            _logger.exception("%s: a bug in mixsweep; nothing more is written", self._name)
        finally:
            self._idle.set()

    def _take(self) -> Item | None:
        """Wait for an item and return it; None if the outbox is closed and empty."""
        with self._changed:
            while not self._abandoned.is_set():
                now = math.inf if self._closing.is_set() else time.monotonic()
                soonest = math.inf
                for rank in sorted(self._waiting):
                    for item, due in self._waiting[rank].items():
                        if due <= now:
                            self._remove(item, rank)
                            return item
                        soonest = min(soonest, due)
                if self._closing.is_set():
                    return None
                self._changed.wait(None if soonest == math.inf else soonest - now)
        return None

    def _remove(self, item: Item, rank: int) -> None:
        del self._waiting[rank][item]
        if not self._waiting[rank]:
            del self._waiting[rank]

    def _deliver_until_accepted(self, item: Item) -> None:
        pause, failing_from = self._retry_after, math.inf
        while not self._abandoned.is_set():
            try:
                self._deliver(item)
            except _MISTAKES:
                raise
            except Exception as error:
                if not self.is_failing:
                    self.is_failing = True
                    reason = self._describe(error)
                    _logger.warning("%s: a write failed and is repeated: %s", self._name, reason)
                now = time.monotonic()
                failing_from = min(failing_from, now)
                if now >= max(failing_from, self._patient_from) + self._patience:
                    self._abandoned.set()
                self._wait(pause)
                pause = min(2 * pause, self._retry_at_most)
            else:
                self._num_delivered += 1
                if self.is_failing:
                    self.is_failing = False
                    _logger.warning("%s: writes succeed again", self._name)
                return

    def _wait(self, seconds: float) -> None:
        """Wait before the next try; once the outbox is closing, waits are short."""
        if self._closing.is_set():
            self._abandoned.wait(min(self._retry_after, _RETRY_WHEN_CLOSING))
        else:
            self._closing.wait(seconds)
