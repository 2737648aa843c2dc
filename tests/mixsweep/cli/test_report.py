import csv
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from mixsweep.cli import report
from mixsweep.cli.main import commands
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.state.statements import state
from tests.mixsweep.cli.trained import train


def test_a_watched_report_is_rewritten_after_each_run_until_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "_LOOK_EVERY", 0.05)
    train(tmp_path, "digits", "seeds=1", but=("erm", 0))
    table, seen = tmp_path / "reports" / "digits" / "table.md", []

    def finish() -> None:
        while not table.exists():
            stop.wait(0.05)
        seen.append(table.read_text())
        train(tmp_path, "digits", "seeds=1")

    stop = threading.Event()
    trainer = threading.Thread(target=finish)
    trainer.start()
    said = CliRunner().invoke(
        commands,
        ["report", "digits", "--set", "seeds=1", "--watch", "--home", str(tmp_path)],
        standalone_mode=False,
    )
    trainer.join()
    assert said.return_value == 0, said.stderr
    assert "0/1" in seen[0]
    assert "0/1" not in table.read_text()
    assert "2/3 runs" in said.stderr


def test_a_report_with_other_seeds_after_a_report_widens_the_interval(tmp_path: Path) -> None:
    claims = "claims: [{says: A, source: B, that: {less: [uniform, erm], metric: test/error}}]"
    file = tmp_path / "digits.yaml"
    file.write_text(load_study("digits", ()).source + claims)
    study = train(tmp_path / "home", str(file), "seeds=4")
    state(study, Store(str(tmp_path / "home" / "store")))

    def confidence(seeds: int) -> float:
        out, home = tmp_path / str(seeds), tmp_path / "home"
        options = ["--set", f"seeds={seeds}", "--home", str(home), "--out", str(out)]
        said = CliRunner().invoke(commands, ["report", str(file), *options], standalone_mode=False)
        assert said.return_value == 0, said.stderr
        with (out / "verdicts.csv").open() as verdicts:
            (row,) = csv.DictReader(verdicts)
        return float(row["confidence"])

    assert confidence(3) == pytest.approx(0.95)
    assert confidence(3) == pytest.approx(0.95)
    assert confidence(4) == pytest.approx(0.975)
    assert confidence(3) == pytest.approx(0.975)
    assert confidence(2) == pytest.approx(1 - 0.05 / 3)
