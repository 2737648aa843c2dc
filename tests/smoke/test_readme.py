"""Commands of README.md, run in a clone, in order."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.docs.test_documentation import blocks, environment_of, typed

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

NOT_TYPED = {
    "make quickstart": "installs gigabytes; CI begins with the same set-up",
    "make test": "runs this test",
    ". .venv/bin/activate": "the test has a path of its own",
}
"""Commands of README.md that this test does not run, and why."""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_command_and_script_runs_in_a_clone_in_order(tmp_path: Path) -> None:
    clone = tmp_path / "mixsweep"
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, clone], check=True)
    environment = {**environment_of(tmp_path, clone), "MIXSWEEP_DATA": str(tmp_path / "data")}
    parts = list(blocks(README))
    lines = [line for kind, text in parts if kind == "console" for line in typed(text)]
    assert set(lines) >= NOT_TYPED.keys()
    for line in lines:
        if line in NOT_TYPED:
            continue
        if line.startswith("mixsweep ui"):
            _see_pages(line, clone, environment)
            continue
        ran = subprocess.run(
            line, shell=True, cwd=clone, env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, f"$ {line}\n{ran.stdout}\n{ran.stderr}"
    for script in [text for kind, text in parts if kind == "python"]:
        ran = subprocess.run(
            ["python", "-c", script], cwd=clone, env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, f"{script}\n{ran.stderr}"
        assert ran.stdout or "print" not in script


def _see_pages(line: str, clone: Path, environment: dict[str, str]) -> None:
    """Run a command that serves pages, and end it once it has printed its links."""
    process = subprocess.Popen(
        f"{line} --port 5987", shell=True, cwd=clone, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        printed = [process.stdout.readline() for _ in range(3)]
        assert printed[0].strip() == "digits"
        assert all("http://127.0.0.1:5987/#/experiments/" in link for link in printed[1:])
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        process.stdout.close()
