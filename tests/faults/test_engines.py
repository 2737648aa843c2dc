"""The inline engine meets the same faults as Ray, and ends with the same bits."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.conftest import CommandLine
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]


def test_an_inline_launch_that_was_killed_and_interrupted_ends_with_the_bits_of_ray(
    command_line: Callable[..., CommandLine], undisturbed: CommandLine
) -> None:
    mixsweep = command_line()
    first, second = TWO_LAWS.study.runs()[:2]
    with Launch(mixsweep, TWO_LAWS, "--engine", "inline", slots=None) as launch:
        launch.stage(first, epochs=4)
        launch.process.kill()
        launch.process.wait()
    acknowledged = TWO_LAWS.acknowledged(launch.store)
    with Launch(mixsweep, TWO_LAWS, "--engine", "inline", slots=None) as launch:
        launch.stage(second, epochs=4)
        os.kill(launch.process.pid, signal.SIGTERM)
        assert "interrupted" in launch.end(130).stderr
    acknowledged = {**acknowledged, **TWO_LAWS.acknowledged(launch.store)}
    with Launch(mixsweep, TWO_LAWS, "--engine", "inline", slots=None) as launch:
        launch.end(0)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged)
