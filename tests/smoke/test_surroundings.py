"""Surroundings: commands work in an environment where everything is unusual at once."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import CommandLine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ODD = "é 'x' \"y\" #%?&[1]$HOME\\"
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
WORST = {
    "XDG_CACHE_HOME": "/no/such/place",
    "TMPDIR": "/no/such/place",
    "LC_ALL": "POSIX",
    "TERM": "no-such",
    "COLUMNS": "0",
    "OPTUNA_STORAGE": "junk",
    "RAY_ADDRESS": "",
    "RAY_TMPDIR": "/no/such/place",
    "PYTHONWARNINGS": "error",
    "PYTHONUTF8": "0",
    "PYTHONIOENCODING": "ascii",
    "PYTHONSAFEPATH": "1",
    **dict.fromkeys(_PROXIES, "http://127.0.0.1:9"),
}
STUDY = str(Path(__file__).parents[1] / "faults" / "closed-form.yaml")


def test_commands_work_in_the_worst_combined_environment(tmp_path: Path) -> None:
    odd = tmp_path / ODD
    odd.mkdir()
    mixsweep = CommandLine(
        home=odd / "runs", data=odd / "data", extra={**WORST, "HOME": str(odd)},
        prefix=("sh", "-c", 'umask 077 && exec "$@"', "sh"),
    )  # fmt: skip
    draws = ("--set", "base.draws=1000")
    for command in (
        ("run", STUDY, "--engine", "inline", *draws),
        ("report", STUDY, *draws),
        ("status", STUDY, "--json", *draws),
        ("report", STUDY, "--epochs", str(tmp_path / "out.csv"), *draws),
    ):
        done: subprocess.CompletedProcess[str] = mixsweep(*command)
        assert "Traceback" not in done.stdout + done.stderr, command
