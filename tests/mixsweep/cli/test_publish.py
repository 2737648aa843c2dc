"""publish: its output, and what it refuses."""

from pathlib import Path

import pytest

from mixsweep.cli.main import commands
from tests.reports.small_report import write_report


def test_the_site_of_a_home_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_report(tmp_path / "home" / "reports" / "one")
    arguments = ["publish", "--home", str(tmp_path / "home"), "--out", str(tmp_path / "site")]
    commands.main(arguments, standalone_mode=False)
    assert capsys.readouterr().out.startswith("1 report  ")
    assert (tmp_path / "site" / "one" / "report.html").is_file()
