import logging
import math
import threading
import time

import pytest

from sweeps.tracking.outbox import Outbox


class Post:
    """A destination that may fail; it records what it accepted."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.tried = threading.Event()
        self.accepted: list[int] = []

    def deliver(self, item: int) -> None:
        self.tried.set()
        if not self.is_open.is_set():
            raise ConnectionError("closed for lunch")
        self.accepted.append(item)


@pytest.fixture
def post() -> Post:
    return Post()


def outbox_to(post: Post) -> Outbox[int]:
    outbox = Outbox(post.deliver, name="the post", retry_after=0.01, retry_at_most=0.02)
    outbox.start()
    return outbox


def test_items_arrive_in_the_order_of_posting(post: Post) -> None:
    post.is_open.set()
    outbox = outbox_to(post)
    for item in range(100):
        outbox.post(item)
    assert outbox.close(timeout=5)
    assert post.accepted == list(range(100))


def test_items_of_a_higher_rank_wait_for_items_of_a_lower_rank(post: Post) -> None:
    post.is_open.set()
    outbox = Outbox(post.deliver, name="the post")
    for item, rank in ((1, 2), (2, 1), (3, 0), (4, 1), (1, 1), (2, 2)):
        outbox.post(item, rank=rank)
    outbox.start()
    assert outbox.close(timeout=5)
    assert post.accepted == [3, 2, 4, 1]


def test_a_waiting_item_that_is_posted_again_is_delivered_once(post: Post) -> None:
    outbox = outbox_to(post)
    outbox.post(1)
    assert post.tried.wait(5)
    for item in (2, 3, 2):
        outbox.post(item)
    post.is_open.set()
    assert outbox.close(timeout=5)
    assert post.accepted == [1, 2, 3]


def test_an_item_posted_again_during_its_delivery_is_delivered_again(post: Post) -> None:
    outbox = outbox_to(post)
    outbox.post(1)
    assert post.tried.wait(5)
    outbox.post(1)
    post.is_open.set()
    assert outbox.close(timeout=5)
    assert post.accepted == [1, 1]


def test_a_delayed_item_waits_for_its_time_or_the_end(post: Post) -> None:
    post.is_open.set()
    outbox = outbox_to(post)
    outbox.post(1, delay=3600)
    outbox.post(2, delay=0.05)
    started = time.monotonic()
    while not post.accepted:
        assert time.monotonic() < started + 5
        time.sleep(0.01)
    assert time.monotonic() >= started + 0.05
    assert post.accepted == [2]
    assert outbox.close(timeout=5)
    assert post.accepted == [2, 1]


def test_an_outage_loses_no_item_and_warns_at_its_beginning_and_end(
    post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = outbox_to(post)
    for item in range(3):
        outbox.post(item)
        assert post.tried.wait(5)
        post.tried.clear()
    post.is_open.set()
    assert outbox.close(timeout=5)
    assert post.accepted == [0, 1, 2]
    assert [record.getMessage() for record in caplog.records] == [
        "the post: a write failed and is repeated: closed for lunch",
        "the post: writes succeed again",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_posting_does_not_wait_for_a_hanging_delivery() -> None:
    release = threading.Event()
    outbox = Outbox[int](lambda item: (release.wait(), None)[1], name="the post")
    outbox.start()
    for item in range(10_000):
        outbox.post(item)
    assert not outbox.close(timeout=0.05)
    release.set()


def test_close_returns_false_if_items_were_not_delivered(post: Post) -> None:
    outbox = outbox_to(post)
    outbox.post(1)
    assert not outbox.close(timeout=0.1)
    assert post.accepted == []


def test_closing_waits_for_slow_deliveries_and_not_for_failing_ones(post: Post) -> None:
    failing = outbox_to(post)
    failing.post(1)
    started = time.monotonic()
    assert not failing.close(timeout=60, patience=0.1)
    assert time.monotonic() - started < 10
    slow = Outbox[int](lambda item: time.sleep(0.3), name="the post")
    slow.start()
    slow.post(1)
    assert slow.close(timeout=60, patience=0.1)


def test_finishing_waits_during_deliveries_and_keeps_undelivered_items() -> None:
    outbox = Outbox[int](lambda item: time.sleep(0.2), name="the post")
    for item in range(8):
        outbox.post(item)
    outbox.start()
    assert not outbox.finish(timeout=0.3)
    assert 4 <= len(outbox.waiting) <= 7, "one more may be in delivery"
    assert outbox.finish(timeout=60, stall=1.0)
    assert outbox.waiting == ()


def test_finishing_ends_when_no_item_is_delivered_for_the_stall_time() -> None:
    release = threading.Event()
    outbox = Outbox[int](lambda item: (release.wait(), None)[1], name="the post")
    outbox.post(1)
    outbox.start()
    started = time.monotonic()
    assert not outbox.finish(timeout=math.inf, stall=0.1)
    assert time.monotonic() - started < 5
    release.set()


def test_patience_with_a_failing_delivery_starts_at_its_first_failure() -> None:
    failed = []

    def deliver(item: int) -> None:
        if item == 1:
            time.sleep(0.6)
        elif not failed:
            failed.append(item)
            raise ConnectionError("busy")

    outbox = Outbox[int](deliver, name="the post", retry_after=0.01)
    outbox.post(1)
    outbox.post(2)
    outbox.start()
    assert outbox.close(timeout=60, patience=0.5)


def test_closing_cuts_a_long_wait_between_two_tries_short(post: Post) -> None:
    outbox = Outbox(post.deliver, name="the post", retry_after=3600.0)
    outbox.start()
    outbox.post(1)
    assert post.tried.wait(5)
    post.is_open.set()
    assert outbox.close(timeout=5)
    assert post.accepted == [1]


def test_items_posted_before_the_start_are_delivered_after_the_start(post: Post) -> None:
    post.is_open.set()
    outbox = Outbox(post.deliver, name="the post")
    outbox.post(1)
    assert post.accepted == []
    outbox.start()
    assert outbox.close(timeout=5)
    assert post.accepted == [1]


def test_a_programming_error_is_raised_and_not_retried_as_an_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tries: list[int] = []

    def deliver(item: int) -> None:
        tries.append(item)
        raise TypeError("a list is no number")

    outbox = Outbox(deliver, name="the post", retry_after=0.01)
    outbox.start()
    outbox.post(1)
    with pytest.raises(TypeError, match="a list is no number"):
        outbox.close(timeout=5)
    assert tries == [1]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_replaced_items_are_delivered_by_rank_while_the_outbox_closes(
    post: Post,
) -> None:
    outbox = outbox_to(post)
    for item in range(5):
        outbox.post(item)
    assert post.tried.wait(5)
    closing = threading.Thread(target=outbox.close, args=(5,))
    closing.start()
    outbox.replace({9: 4, 7: 0, 8: 3})
    post.is_open.set()
    closing.join()
    assert post.accepted == [0, 7, 8, 9]


def test_closing_an_outbox_that_never_started_reports_undelivered_items(post: Post) -> None:
    outbox = Outbox(post.deliver, name="the post")
    outbox.post(1)
    assert not outbox.close(timeout=5)
