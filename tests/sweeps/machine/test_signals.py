import signal
import subprocess
import sys

import pytest

from sweeps.machine.signals import arrivals, ending_signals, hear


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


def test_a_given_handler_receives_the_signal_instead() -> None:
    heard: list[int] = []
    hear(lambda number, frame: heard.append(number))
    signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]


def test_leave_ends_the_process_without_running_exit_handlers() -> None:
    script = (
        "import atexit, os, signal; from sweeps.machine.signals import hear, leave; "
        "atexit.register(print, 'waited'); hear(leave); signal.raise_signal(signal.SIGTERM)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_an_interrupt_during_imports_ends_a_process_that_writes_to_a_closed_pipe() -> None:
    script = (
        "import os, signal; from sweeps.machine.signals import hear, leave_saying_so; "
        "reader, writer = os.pipe(); os.dup2(writer, 2); os.close(reader); os.close(writer); "
        "hear(leave_saying_so); signal.raise_signal(signal.SIGINT)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == 130


def test_processes_of_tests_can_be_interrupted_when_pytest_is_a_background_job() -> None:
    script = (
        "import signal, subprocess, sys; from tests.conftest import pytest_configure; "
        "pytest_configure(); "
        "shown = 'import signal; print(signal.SIG_IGN in map(signal.getsignal, (1, 2)))'; "
        "subprocess.run([sys.executable, '-c', shown], check=True)"
    )
    done = subprocess.run(
        ["bash", "-c", "trap '' INT HUP; exec \"$@\"", "bash", sys.executable, "-c", script],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("False\n", "")


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


def test_a_nested_block_counts_the_signals_since_the_outer_block_began() -> None:
    hear(lambda number, frame: None)
    with arrivals() as has_come:
        signal.raise_signal(signal.SIGTERM)
        with arrivals() as has_come_within:
            assert has_come_within()
        assert has_come()
    with arrivals() as has_come:
        assert not has_come()
