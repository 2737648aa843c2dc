"""Endings: exit code, `--on-finish` and report are right whatever happens to the streams."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interpreters import run_python

STUDY = Path(__file__).parents[1] / "faults" / "closed-form.yaml"
STATES = {
    "open": "{command}",
    "stdout closed": "{command} >&-",
    "stderr closed": "{command} 2>&-",
    "both closed": "{command} >&- 2>&-",
    "stdout full": "{command} > /dev/full",
    "stderr full": "{command} 2> /dev/full",
    "stdout to nobody": "set -o pipefail; {command} | true",
    "stderr to nobody": "set -o pipefail; {command} 2>&1 >/dev/null | true",
    "stdout to who reads a line": "set -o pipefail; {command} | head -n 1",
    "stdout in ascii": "PYTHONIOENCODING=ascii {command}",
    "stdout in latin-1": "PYTHONIOENCODING=latin-1 {command}",
}


def ran(
    state: str, *arguments: str, home: Path, **variables: str
) -> "subprocess.CompletedProcess[str]":
    command = shlex.join([sys.executable, "-m", "mixsweep", *arguments])
    shell = STATES[state].format(command=command)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MIX", "MLFLOW_", "RAY_"))}
    done = subprocess.run(
        ["bash", "-c", shell], env={**kept, "MIXSWEEP_HOME": str(home), **variables},
        capture_output=True, text=True, errors="replace", check=False, timeout=200,
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr
    return done


FEW = ("both closed", "stdout full", "stdout to nobody", "stdout in ascii")


@pytest.mark.parametrize(
    ("command", "state"),
    [
        pytest.param(c, s, marks=[] if c == "schema" and s in FEW else pytest.mark.long)
        for c in ("schema", "plan", "status --json", "--version")
        for s in STATES
    ],
)
def test_a_read_only_command_exits_0_unless_its_output_is_incomplete(
    tmp_path: Path, command: str, state: str
) -> None:
    name, *options = command.split()
    study = [str(STUDY)] if name in {"plan", "status"} else []
    done = ran(state, name, *study, *options, home=tmp_path)
    assert done.returncode == (1 if state == "stdout full" else 0), done.stderr
    if state == "stdout full":
        assert done.stderr.endswith("the printed text is incomplete\n")


def launched(state: str, home: Path, *options: str) -> tuple[int, str, bool]:
    told = home.parent / "told"
    done = ran(
        state, "run", str(STUDY), "--set", "seeds=1", "--set", "base.draws=1000",
        "--engine", "inline", "--on-finish", f"echo $MIXSWEEP_EXIT_CODE > {told}", *options,
        home=home,
    )  # fmt: skip
    is_reported = (home / "reports" / "closed-form" / "report.html").exists()
    return done.returncode, told.read_text().strip(), is_reported


@pytest.mark.parametrize(
    "state", [pytest.param(s, marks=[] if s == "both closed" else pytest.mark.long) for s in STATES]
)
def test_a_launch_exits_0_and_writes_its_report_in_every_state_of_its_streams(
    tmp_path: Path, state: str
) -> None:
    assert launched(state, tmp_path / "runs") == (0, "0", True)


MISTAKEN = """
import sys
from mixsweep.cli import main as cli
from mixsweep.launching import launch, preconditions

def plan_study(*_, **__):
    raise ZeroDivisionError("of ours")

launch.plan_study = preconditions.plan_study = plan_study
sys.argv = ["mixsweep", "run", *sys.argv[1:]]
cli.main()
"""


def test_an_unexpected_error_is_reported_in_one_line_and_passed_to_the_hook(tmp_path: Path) -> None:
    told, place = tmp_path / "told", tmp_path / "tmp"
    place.mkdir()
    done = run_python(
        MISTAKEN, STUDY, "--engine", "inline",
        "--on-finish", f"echo $MIXSWEEP_EXIT_CODE > {told}",
        env={**os.environ, "TMPDIR": str(place), "MIXSWEEP_HOME": str(tmp_path / "runs")},
    )  # fmt: skip
    assert (done.returncode, told.read_text()) == (1, "1\n")
    (traced,) = place.glob("mixsweep-error-*.txt")
    assert done.stderr == (
        "an error in mixsweep itself (ZeroDivisionError: of ours); stored results are kept; please "
        f"report this error with the file {traced}\n"
    )
    assert "in plan_study\nZeroDivisionError: of ours" in traced.read_text()
    assert traced.stat().st_mode & 0o077 == 0
