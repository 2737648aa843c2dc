import signal
import subprocess
import sys

import pytest

from sweeps.signals import ending_signals, hear


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_ending_signal_is_heard_as_an_interrupt(number: signal.Signals) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    hear()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def test_a_hang_up_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    hear()
    assert ending_signals() == (signal.SIGINT, signal.SIGTERM)
    signal.raise_signal(signal.SIGHUP)


def test_a_handler_of_ones_own_hears_instead() -> None:
    heard: list[int] = []
    hear(lambda number, frame: heard.append(number))
    signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]


def test_whoever_asks_again_does_not_wait() -> None:
    script = (
        "import atexit, os, signal; from sweeps.signals import hear, leave; "
        "atexit.register(print, 'waited'); hear(leave); signal.raise_signal(signal.SIGTERM)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
