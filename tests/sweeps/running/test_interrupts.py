import contextlib
import os
import signal

import pytest

from sweeps.machine.signals import ending_signals, hear
from sweeps.running.tuning import Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_that_a_library_swallows_ends_the_step(number: int) -> None:
    before = {
        name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        with Interrupts() as interrupts:
            interrupts.on_step_end(1, [])
            with contextlib.suppress(KeyboardInterrupt):
                os.kill(os.getpid(), number)
                pytest.fail("the signal raised nothing")
            with pytest.raises(KeyboardInterrupt):
                interrupts.on_step_end(2, [])
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def test_a_hangup_signal_stays_ignored_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert signal.SIGHUP not in ending_signals()
        hear()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
