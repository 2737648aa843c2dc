"""Command line: its names are read as UTF-8, and no failing stream ends the process."""

import subprocess
import sys
from pathlib import Path

import pytest

from sweeps.machine.command_line import read_names_as_utf8


def test_a_process_with_a_non_utf8_locale_restarts_in_utf8_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.setattr("os.execve", lambda *given: started.append(given))
    monkeypatch.setattr("sys.orig_argv", ["python", "-m", "mixsweep", "status"])
    read_names_as_utf8()
    assert started == []
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "iso8859-1")
    read_names_as_utf8()
    ((program, arguments, environment),) = started
    assert arguments == [program, "-X", "utf8", "-m", "mixsweep", "status"]
    assert environment["PYTHONUTF8"] == "1"


PROGRAM = """
import os, sys
from sweeps.machine.command_line import lost_output, steady_streams
steady_streams()
opened = os.open("/dev/null", os.O_RDONLY)
print("out \\u2020")
print("err \\u2020", file=sys.stderr)
sys.stdout.flush()
os.write(1, b"")
lost = lost_output()
with open(sys.argv[1], "w") as file:
    print(opened > 2, lost.errno if lost else None, file=file)
"""


@pytest.mark.parametrize("state", ["0>&-", "1>&-", "2>&-", "0> /dev/full", "> /dev/full"])
def test_a_program_survives_closed_and_full_streams(tmp_path: Path, state: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f'{sys.executable} -c "$PROGRAM" {tmp_path}/seen {state}'],
        env={"PROGRAM": PROGRAM, "PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr + done.stdout
    lost = 28 if state == "> /dev/full" else None
    assert (tmp_path / "seen").read_text() == f"True {lost}\n"
