import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from mixsweep.cli.ending import Ending
from sweeps.machine.processes import lives
from tests.faults.launches import wait_for
from tests.interpreters import start_python


def test_the_on_finish_command_receives_study_exit_code_and_report(tmp_path: Path) -> None:
    told = tmp_path / "told"
    line = f'echo "$MIXSWEEP_STUDY $MIXSWEEP_EXIT_CODE $MIXSWEEP_REPORT" >{told}'
    assert Ending(command=line, study="digits", report=tmp_path / "report").close(1) == 1
    assert told.read_text() == f"digits 1 {tmp_path / 'report'}\n"
    Ending(command=line, study="digits").close(130)
    assert told.read_text() == "digits 130 \n"


def test_a_failing_on_finish_command_is_reported_with_its_exit_code(
    capfd: pytest.CaptureFixture[str],
) -> None:
    Ending(command="echo out; exit 7", study="digits").close(0)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "out\n--on-finish: the shell command exited with 7\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("before", ["hear()", "hear(leave)"])
def test_an_interrupt_ends_the_on_finish_command_and_its_child_processes(
    number: signal.Signals, before: str
) -> None:
    """Each case has a first interrupt, and a second one during the hook."""
    program = (
        "import signal; from sweeps.machine.signals import hear, leave; "
        "from mixsweep.cli.ending import Ending; "
        f"signal.signal(signal.SIGHUP, signal.SIG_DFL); {before}; "
        "print(Ending(command='sleep 300 & echo $!; wait', study='digits').close(1))"
    )
    process = start_python(program, stderr=subprocess.PIPE)
    sleeper = psutil.Process(int(process.stderr.readline()))
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "130\n")
    assert err == "--on-finish: the shell command was interrupted\n"
    wait_for(lambda: not lives(sleeper))  # what is killed ends a moment later
