from pathlib import Path

import pytest

from sweeps.commands.ending import Ending


def test_the_command_learns_study_code_and_report(tmp_path: Path) -> None:
    told = tmp_path / "told"
    line = f'echo "$MIXSWEEP_STUDY $MIXSWEEP_EXIT_CODE $MIXSWEEP_REPORT" >{told}'
    Ending(command=line, study="digits", report=tmp_path / "report").close(1)
    assert told.read_text() == f"digits 1 {tmp_path / 'report'}\n"
    Ending(command=line, study="digits").close(130)
    assert told.read_text() == "digits 130 \n"


def test_a_command_that_fails_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    Ending(command="echo out; exit 7", study="digits").close(0)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "out\n--on-finish 'echo out; exit 7' exited with 7\n")


def test_without_a_command_nothing_happens(capfd: pytest.CaptureFixture[str]) -> None:
    Ending(study="digits").close(0)
    assert capfd.readouterr() == ("", "")
