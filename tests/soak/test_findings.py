import json
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from tests.soak.findings import MEASUREMENTS, publish, write_table

ROOT = Path(__file__).parents[2]
PUBLISHED = sorted((ROOT / MEASUREMENTS).glob("*.jsonl"))


def test_the_table_of_a_kind_shows_the_newest_finding_of_each_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    publish("kills", "1 kill", {"kills": {"worker": 1}})
    publish("kills", "3 kills", {"kills": {"worker": 2, "driver": 1}, "violations": []})
    spread = {"n": 3, "median": 8.25, "min": 8.0, "max": 9.5}
    figures = {
        "minutes": 0.123456,
        "ratio": spread | {"goal": 7.0},
        "other": spread | {"goal": None},
        "pairs": [f"pair {number}" for number in range(78)],
    }
    folder = publish("disks", "1 full disk", figures)
    assert folder == Path("reports/published/measurements")
    found = [json.loads(line) for line in (folder / "soak.jsonl").read_text().splitlines()]
    assert [one["title"] for one in found] == ["1 kill", "3 kills", "1 full disk"]
    rows = (folder / "soak.md").read_text().splitlines()
    for row in (
        "| | | kills: worker | 2 |",
        "| | | violations | none |",
        "| | | minutes | 0.1235 |",
        "| | | ratio | 8.25 [8 to 9.5], n=3, goal 7 |",
        "| | | other | 8.25 [8 to 9.5], n=3 |",
        "| | | pairs | pair 0, pair 1, pair 2, and 75 more |",
    ):
        assert row in rows
    assert "| | | kills: worker | 1 |" not in rows
    assert len(found[-1]["figures"]["pairs"]) == 78


@pytest.mark.parametrize("lines", PUBLISHED, ids=lambda lines: lines.stem)
def test_a_published_table_is_the_one_of_its_findings(lines: Path, tmp_path: Path) -> None:
    shutil.copy(lines, tmp_path)
    write_table(tmp_path, lines.stem)
    table = f"{lines.stem}.md"
    assert lines.with_name(table).read_text() == (tmp_path / table).read_text()


def test_findings_are_written_to_the_given_folder(tmp_path: Path) -> None:
    assert publish("kills", "no kills", {"kills": 0}, out=tmp_path / "here") == tmp_path / "here"
    assert (tmp_path / "here" / "soak.md").exists()


def test_a_finding_contains_no_path_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = publish("kills", "no kills", {"kills": 0})
    written = "".join(path.read_text() for path in folder.iterdir())
    assert str(tmp_path) not in written
    assert str(Path(__file__).parents[2]) not in written


def test_soaks_and_benches_import_only_names_that_exist() -> None:
    """A soak runs for hours and by hand, so that a renamed name would be found late."""
    modules = [
        f"tests.{folder}.{file.stem}"
        for folder in ("soak", "bench")
        for file in sorted((ROOT / "tests" / folder).glob("*.py"))
        if not file.stem.startswith(("test_", "__"))
    ]
    assert len(modules) > 15
    for module in modules:
        import_module(module)
