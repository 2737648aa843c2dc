"""Waits for progress: they outlast any slowness, and end when nothing moves."""

import itertools
import time

import pytest

from tests.hosts.patience import wait_while_it_moves


def test_a_slow_event_is_awaited_as_long_as_something_moves() -> None:
    steps = itertools.count()
    began = time.monotonic()
    assert wait_while_it_moves(lambda: time.monotonic() > began + 2, lambda: next(steps), 0.7)


def test_a_wait_ends_when_nothing_moves_and_names_what_was_seen_last() -> None:
    with pytest.raises(AssertionError, match=r"nothing moved for 0\.5 s; last seen: \(1, 2\)"):
        wait_while_it_moves(lambda: False, lambda: (1, 2), 0.5)
