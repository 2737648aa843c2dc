"""Published results: what the README claims can be made again from the committed files."""

import csv
import re
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


PAGES = sorted((ROOT / "reports" / "published").glob("*/README.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_published_page_leads_to_files_and_prints_their_verdicts(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (page.parent / target).is_file()
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    told = {(cells[0], cells[2]) for cells in lines if len(cells) == 6}
    for file in page.parent.glob("*/verdicts.csv"):
        for row in _rows(file):
            assert (row["says"], f"**{row['verdict']}**") in told


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))
