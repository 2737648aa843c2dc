"""Commands of README.md, run in a clone, in order."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

NOT_TYPED = {
    "make quickstart": "installs gigabytes; CI begins with the same set-up",
    "make test": "runs this test",
    ". .venv/bin/activate": "the test has a path of its own",
}
"""Commands of README.md that this test does not run, and why."""


def _typed(text: str) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line.partition("  #")[0].strip() for line in lines]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_command_and_script_runs_in_a_clone_in_order(tmp_path: Path) -> None:
    clone, programs = tmp_path / "mixsweep", tmp_path / "bin"
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, clone], check=True)
    programs.mkdir()
    for name, module in (("mixsweep", "-m mixsweep"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
        (programs / name).chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_", "MIX"))}
    environment = {
        **kept,
        "PATH": f"{programs}:/usr/bin:/bin",
        "PYTHONPATH": str(clone),
        "OMP_NUM_THREADS": "1",
        "MIXSWEEP_DATA": str(tmp_path / "data"),
    }
    assert set(_typed(README)) >= NOT_TYPED.keys()
    for line in _typed(README):
        if line in NOT_TYPED:
            continue
        if line.startswith("mixsweep ui"):
            _see_pages(line, clone, environment)
            continue
        ran = subprocess.run(
            line, shell=True, cwd=clone, env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, f"$ {line}\n{ran.stdout}\n{ran.stderr}"
    for script in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
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
    assert process.stdout is not None
    try:
        printed = [process.stdout.readline() for _ in range(3)]
        assert printed[0].strip() == "digits"
        assert all("http://127.0.0.1:5987/#/experiments/" in link for link in printed[1:])
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        process.stdout.close()
        time.sleep(0.1)
