"""Waits for progress: they outlast any slowness, and end when nothing moves."""

import itertools
import time

import pytest

from tests.hosts.patience import wait_while_it_moves


def test_a_wait_continues_while_the_observed_value_changes() -> None:
    steps = itertools.count()
    began = time.monotonic()
    assert wait_while_it_moves(lambda: time.monotonic() > began + 2, lambda: next(steps), 0.7)


def test_a_wait_fails_with_the_last_value_when_the_observed_value_stops_changing() -> None:
    with pytest.raises(AssertionError, match=r"nothing moved for 0\.5 s; last seen: \(1, 2\)"):
        wait_while_it_moves(lambda: False, lambda: (1, 2), 0.5)
