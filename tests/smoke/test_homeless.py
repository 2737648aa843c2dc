"""A user without home directory and without entry in the user database: one line, no traceback."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_HOMELESS = ("unshare", "--user", "--map-user=54321", "--map-group=54321")

pytestmark = [
    pytest.mark.skipif(
        shutil.which("unshare") is None
        or subprocess.run([*_HOMELESS, "true"], capture_output=True, check=False).returncode != 0,
        reason="this machine permits no user namespaces",
    ),
]


def ran(place: Path, *arguments: str, **home: str) -> "subprocess.CompletedProcess[str]":
    unset = {"HOME", "USER", "LOGNAME", "LNAME", "USERNAME", "XDG_CACHE_HOME", "MIXSWEEP_DATA"}
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        [*_HOMELESS, sys.executable, "-m", "mixsweep", *arguments],
        env={**kept, "PYTHONPATH": str(Path(__file__).parents[2]), **home},
        capture_output=True, text=True, check=False, cwd=place,
    )  # fmt: skip


@pytest.mark.parametrize("command", ["run digits", "plan", "data fetch"])
def test_a_command_without_a_home_directory_fails_with_one_line(
    tmp_path: Path, command: str
) -> None:
    done = ran(tmp_path, *command.split())
    assert done.returncode == 2
    said = "user 54321 has no home directory; set HOME to a folder that this user can write to\n"
    assert done.stderr == said


@pytest.mark.parametrize("command", ["plan digits", "plan", "status"])
def test_a_command_with_a_home_directory_works_for_a_user_without_a_name(
    tmp_path: Path, command: str
) -> None:
    done = ran(tmp_path, *command.split(), HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
