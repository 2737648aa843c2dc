"""Command line: its names are read as UTF-8, and no failing stream ends the process."""

import subprocess
import sys

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


@pytest.mark.parametrize("stream", [0, 1, 2])
@pytest.mark.parametrize("state", ["open", ">&-", "> /dev/full", "| true", "ascii"])
def test_a_program_survives_closed_full_and_non_utf8_streams(
    tmp_path_factory: pytest.TempPathFactory, stream: int, state: str
) -> None:
    seen = tmp_path_factory.mktemp("seen") / "file"
    encoding = "ascii" if state == "ascii" else "utf-8"
    shell = f'{sys.executable} -c "$PROGRAM" {seen}'
    if state == "| true":
        swap = {0: "", 1: "", 2: "2>&1 >/dev/null"}[stream]
        shell = f"set -o pipefail; {{ sleep 0.3; {shell}; }} {swap} | true"
    elif "&-" in state or "/dev" in state:
        shell = f"{shell} {stream}{state}"
    done = subprocess.run(
        ["bash", "-c", shell],
        env={"PROGRAM": PROGRAM, "PYTHONIOENCODING": encoding, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr + done.stdout
    is_full = stream == 1 and state == "> /dev/full"
    assert seen.read_text() == f"True {28 if is_full else None}\n"
    if encoding == "ascii":
        assert done.stdout == b"out \\u2020\n"
