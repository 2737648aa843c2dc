import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from sweeps.cli import commands
from sweeps.commands import report
from tests.sweeps.commands.trained import train


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
