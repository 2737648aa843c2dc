import json
from pathlib import Path

from click.testing import CliRunner, Result

from mixsweep.cli.main import commands
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from sweeps.state.statements import state
from tests.mixsweep.cli.trained import train


def _mixsweep(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(commands, [*arguments, "--home", str(home)], standalone_mode=False)


def test_every_study_and_settings_has_a_line_with_progress_driver_and_report(
    tmp_path: Path,
) -> None:
    train(tmp_path, "digits", but=("erm", 1))
    train(tmp_path, "digits", "base.epochs=2")
    assert _mixsweep(tmp_path, "report", "digits", "--set", "base.epochs=2").return_value == 0
    with Lease.acquire(Store(str(tmp_path / "store")), "digits", "mixsweep run digits") as lease:
        said = json.loads(_mixsweep(tmp_path, "status", "--json").stdout)["studies"]
        lines = _mixsweep(tmp_path, "status").stdout.splitlines()
    assert [(row["finished"], row["runs"]) for row in said] == [(6, 6), (5, 6)]
    assert [row["told"] for row in said] == ["epochs=2", "epochs=3"]
    assert [row["driver"] is None for row in said] == [False, True]
    assert said[0]["driver"]["pid"] == lease.holder.pid
    assert said[0]["report"] == str(tmp_path / "reports" / "digits" / "report.html")
    assert said[1]["report"] is None
    assert len(lines) == 3
    for line, row in zip(lines[1:], said, strict=True):
        assert line.startswith("digits")
        assert f"{row['finished']}/6" in line
        assert row["told"] in line


def test_the_list_shows_when_claims_were_stated_and_the_number_of_looks(
    tmp_path: Path,
) -> None:
    study = train(tmp_path, "entropy-floor")
    state(study, Store(str(tmp_path / "store")))
    (row,) = json.loads(_mixsweep(tmp_path, "status", "--json").stdout)["studies"]
    assert row["stated"] == "2 of 2 after the runs began"
    assert _mixsweep(tmp_path, "report", "entropy-floor").return_value == 0
    lines = _mixsweep(tmp_path, "status").stdout.splitlines()
    assert "claims stated" in lines[0]
    assert "2 of 2 after the runs began, 1 look" in lines[1]
