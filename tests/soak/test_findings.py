import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.findings import publish


def test_all_findings_of_a_day_and_commit_share_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    publish("kills", "3 kills", {"kills": {"worker": 2, "driver": 1}, "violations": []})
    folder = publish("disks", "1 full disk", {"minutes": 0.123456})
    assert folder.parent == Path("reports/published")
    assert json.loads((folder / "kills.json").read_text())["figures"]["violations"] == []
    table = (folder / "table.md").read_text()
    for row in (
        "| kills | kills: worker | 2 |",
        "| kills | violations | none |",
        "| disks | minutes | 0.1235 |",
    ):
        assert row in table.splitlines()


def test_a_finding_names_no_place_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = publish("kills", "no kills", {"kills": 0})
    written = "".join(path.read_text() for path in folder.iterdir())
    assert str(tmp_path) not in written
    assert str(Path(__file__).parents[2]) not in written


def test_what_goes_through_study_files_loads_no_torch() -> None:
    """500 MB, of which reading a study file needs 50."""
    program = (
        "import sys, tests.soak.mutations as soak\n"
        "soak.verdict(sorted(soak.STUDIES.glob('*.yaml'))[0])\n"
        "print(*{'torch', 'ray', 'mlflow', 'pandas', 'scipy'} & sys.modules.keys())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == []
