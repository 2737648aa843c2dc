"""Secrets: a password in an address works, and is nowhere in files or output."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.conftest import CommandLines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

CANARY = "cAnArY"
SEARCH = """
study: hidden
base: {data: {name: digits, val_size: 200}, model: {name: mlp}, epochs: 1, batch_size: 256}
arms: {erm: {mix.law: erm}}
seeds: 1
search:
  space: {mix.law: {beta: {log_uniform: [0.5, 2.0]}}}
  points: 2
  objective: val/error
"""


@pytest.mark.parametrize(
    "verbs",
    [
        "run sync plan",
        pytest.param("run run report sync status plan", marks=pytest.mark.long),
    ],
)
def test_the_secret_of_an_address_is_in_no_file_no_output_and_no_process_list(
    command_line: CommandLines,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verbs: str,
) -> None:
    monkeypatch.chdir(tmp_path)  # MLflow makes a folder `file:` there
    study = tmp_path / "hidden.yaml"
    study.write_text(SEARCH)
    optuna = _database(tmp_path / "optuna.db", f"{CANARY}-optuna")
    tracking = _database(tmp_path / "mlflow.db", f"{CANARY}-tracking")
    said, listed = [], []
    home = tmp_path / "runs"
    mixsweep = command_line(home, MIXSWEEP_OPTUNA=optuna, MLFLOW_TRACKING_URI=tracking)
    for verb in verbs.split():
        process = mixsweep.start(verb, str(study))
        listed += list(_listings_with_the_canary(process))
        out, err = process.communicate()
        assert process.returncode == 0, err
        said += [out, err]
    hooked = mixsweep("run", str(study), "--on-finish", f"test -z {CANARY}-hook")
    said += [hooked.stdout, hooked.stderr]
    for name in ("optuna.db", "mlflow.db"):
        assert (tmp_path / name).stat().st_size > 0
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file for file in files if CANARY.encode() in file.read_bytes()] == []
    assert [text for text in said if CANARY in text] == []
    assert listed == []


def _database(file: Path, secret: str) -> str:
    """Return an address with a secret that SQLite ignores."""
    return f"sqlite:///file:{quote(quote(str(file)))}?uri=true&token={secret}"


def _listings_with_the_canary(process: "subprocess.Popen[str]") -> Iterator[bytes]:
    """Yield each process command line that has the secret."""
    while process.poll() is None:
        time.sleep(0.2)
        lines = map(_command_line_of, Path("/proc").glob("[0-9]*"))
        yield from (line for line in lines if CANARY.encode() in line)


def _command_line_of(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
