import signal

import pytest

from sweeps.machine.signals import arrivals, ending_signals, hear
from tests.interpreters import run_python


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_terminating_signal_raises_keyboard_interrupt(number: signal.Signals) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    hear()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def test_an_ignored_hangup_signal_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    hear()
    assert ending_signals() == (signal.SIGINT, signal.SIGTERM)
    signal.raise_signal(signal.SIGHUP)


def test_leave_ends_the_process_without_running_exit_handlers() -> None:
    script = (
        "import atexit, os, signal; from sweeps.machine.signals import hear, leave; "
        "atexit.register(print, 'waited'); hear(leave); signal.raise_signal(signal.SIGTERM)"
    )
    done = run_python(script)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_received_signal_is_recorded_even_if_the_handler_ignores_it() -> None:
    hear(lambda number, frame: None)
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    with arrivals() as has_come:
        assert not has_come()
        signal.raise_signal(signal.SIGTERM)
        assert has_come()
        assert has_come()
    signal.raise_signal(signal.SIGTERM)
    assert signal.set_wakeup_fd(before) == before
    with arrivals() as has_come:
        assert not has_come()


def test_an_ignored_or_non_terminating_signal_is_not_recorded() -> None:
    signal.signal(signal.SIGUSR1, lambda number, frame: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with arrivals() as has_come:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGHUP)
        assert not has_come()
