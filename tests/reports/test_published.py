"""Published results: what the README claims can be made again from the committed files."""

import csv
from pathlib import Path

import pytest

from reports.statistics import summarise
from sweeps.search import CONFIRM

ROOT = Path(__file__).parents[2]
PUBLISHED = sorted(path.parent for path in (ROOT / "reports" / "published").glob("*/table.csv"))


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_a_published_table_follows_from_its_runs(folder: Path) -> None:
    runs, arms = (_rows(folder / name) for name in ("runs.csv", "table.csv"))
    for row in arms:
        arms_of_row = (row["arm"], f"{CONFIRM}{row['arm']}")  # only confirmations are tested
        of_row = [run for run in runs if run["arm"] in arms_of_row and run["test/error"]]
        errors = [float(run["test/error"]) for run in of_row]
        summary = summarise(errors)
        assert summary.n == int(row["n"])
        assert repr(summary.mean) == row["test/error_mean"]
        assert repr(summary.sd) == row["test/error_sd"]


def test_the_readme_prints_the_published_table() -> None:
    readme = (ROOT / "README.md").read_text()
    (quickstart,) = (folder for folder in PUBLISHED if folder.name.endswith("quickstart"))
    assert (quickstart / "table.md").read_text().strip() in readme


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))
