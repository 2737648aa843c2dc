import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mixsweep.cli.launched_studies import _table
from mixsweep.cli.main import commands
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from sweeps.state.statements import state
from tests.damages import DAMAGES
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


def test_a_report_of_a_study_missing_from_the_store_is_listed(tmp_path: Path) -> None:
    train(tmp_path, "digits")
    assert _mixsweep(tmp_path, "report", "digits").return_value == 0
    for path in (tmp_path / "store" / "studies").rglob("*.json"):
        path.unlink()
    (row,) = json.loads(_mixsweep(tmp_path, "status", "--json").stdout)["studies"]
    assert (row["study"], row["finished"], row["runs"]) == ("digits", 6, 6)
    assert row["launched_at_ms"] is None


def test_the_report_in_the_folder_of_the_study_is_shown(tmp_path: Path) -> None:
    train(tmp_path, "digits")
    assert _mixsweep(tmp_path, "report", "digits").return_value == 0
    _mixsweep(tmp_path, "report", "digits", "--set", "seeds=[7, 8]")
    assert len(list((tmp_path / "reports").iterdir())) == 2
    (row,) = json.loads(_mixsweep(tmp_path, "status", "--json").stdout)["studies"]
    assert row["report"] == str(tmp_path / "reports" / "digits" / "report.html")


@pytest.mark.parametrize("damage", ["empty", "other's content", "a FIFO", "a folder", "missing"])
def test_a_report_with_damaged_provenance_is_not_shown_but_its_study_is_listed(
    tmp_path: Path, damage: str
) -> None:
    train(tmp_path, "digits")
    assert _mixsweep(tmp_path, "report", "digits").return_value == 0
    DAMAGES[damage](tmp_path / "reports" / "digits" / "provenance.json")
    (row,) = json.loads(_mixsweep(tmp_path, "status", "--json").stdout)["studies"]
    assert (row["finished"], row["report"]) == (6, None)


def test_partial_files_of_a_killed_report_are_not_listed_as_a_study(tmp_path: Path) -> None:
    train(tmp_path, "digits")
    assert _mixsweep(tmp_path, "report", "digits").return_value == 0
    reports = tmp_path / "reports"
    shutil.copytree(reports / "digits", reports / ".digits.x7_1ab2c")
    assert len(json.loads(_mixsweep(tmp_path, "status", "--json").stdout)["studies"]) == 1


def test_a_study_that_was_never_run_is_not_listed_as_stopped(tmp_path: Path) -> None:
    train(tmp_path, "digits", but=("erm", 0))
    _mixsweep(tmp_path, "report", "digits")
    shutil.rmtree(tmp_path / "store")
    said = _mixsweep(tmp_path, "status").stdout
    assert "not run" in said
    assert "stopped" not in said


def test_an_empty_home_holds_no_study(tmp_path: Path) -> None:
    said = _mixsweep(tmp_path / "none", "status")
    assert (said.return_value, said.stdout) == (0, "")
    assert "this store does not exist" in said.stderr
    assert not (tmp_path / "none").exists()
    (tmp_path / "none" / "store").mkdir(parents=True)
    assert "no study was launched here" in _mixsweep(tmp_path / "none", "status").stderr


def test_a_store_alone_is_listed_without_the_reports_of_the_default_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MIXSWEEP_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    train(tmp_path / "runs", "digits", "seeds=1")
    _mixsweep(tmp_path / "runs", "report", "digits", "--set", "seeds=1")
    train(tmp_path / "other", "digits", "seeds=1", "study=other")
    words = ["status", "--store", str(tmp_path / "other" / "store"), "--json"]
    for more, studies in (([], {"other"}), (["--home", "runs"], {"other", "digits"})):
        said = CliRunner().invoke(commands, [*words, *more], standalone_mode=False)
        assert {row["study"] for row in json.loads(said.stdout)["studies"]} == studies


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_narrow_terminal_gets_every_cell_of_the_list(columns: int) -> None:
    report = "/home/someone/experiments/runs/reports/"
    rows = [
        {
            "study": f"a-study-with-a-long-name-{place}", "settings": "37b12511", "done": "4/6",
            "state": "finished", "launched": "2026-11-26 15:20", "told": "seeds=3", "stated": "",
            "report": f"{report}{place}.html",
        }
        for place in range(3)
    ]  # fmt: skip
    header = {name: name for name in rows[0]} | {"told": ""}
    told = _table([header, *rows], os.terminal_size((columns, 24)))
    for place, row in enumerate(rows):
        assert f"{report}{place}.html" in told.split()
        assert told.count(row["launched"]) == 3
    assert max(map(len, told.splitlines())) < columns
    assert len(told.splitlines()) == (4 if columns == 200 else 12)
    assert _table([header, *rows], None) == _table([header, *rows], os.terminal_size((900, 24)))
