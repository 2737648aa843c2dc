"""Published results: what the README claims can be made again from the committed files."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import yaml

from reports.numbers.statistics import summarise
from sweeps.study.search import CONFIRM

ROOT = Path(__file__).parents[2]
PUBLISHED = sorted(path.parent for path in (ROOT / "reports" / "published").glob("*/table.csv"))


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_a_published_table_follows_from_its_runs(folder: Path) -> None:
    runs, arms = (_rows(folder / name) for name in ("runs.csv", "table.csv"))
    metric = _headline(arms)
    for row in arms:
        arms_of_row = (row["arm"], f"{CONFIRM}{row['arm']}")  # only confirmations are tested
        of_row = [run for run in runs if run["arm"] in arms_of_row and run[metric]]
        summary = summarise([float(run[metric]) for run in of_row])
        assert summary.n == int(row["n"])
        assert repr(summary.mean) == row[f"{metric}_mean"]
        assert repr(summary.sd) == row[f"{metric}_sd"]


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_every_number_of_a_published_table_is_scipy_s_of_its_runs(folder: Path) -> None:
    _check_numbers(*(_rows(folder / name) for name in ("runs.csv", "table.csv")))


def test_every_number_of_a_published_joined_table_is_scipy_s_of_its_runs() -> None:
    for file in sorted((ROOT / "reports" / "published").glob("*/joined.csv")):
        arms, runs = _rows(file), _rows(file.with_name("joined_runs.csv"))
        heads = dict.fromkeys(row["column"] for row in arms)
        assert len(heads) > 1
        for head in heads:
            of_column = ([row for row in rows if row["column"] == head] for rows in (runs, arms))
            _check_numbers(*of_column)


def _check_numbers(runs: list[dict[str, str]], arms: list[dict[str, str]]) -> None:
    metrics = [name for name in runs[0] if "/" in name and f"{name}_mean" in arms[0]]
    family = sum(row["arm"] != row["baseline"] and row["difference"] != "" for row in arms)
    for row in arms:
        for metric in metrics:
            values = list(_by_seed(runs, row["arm"], metric).values())
            if not row[f"{metric}_mean"]:
                continue
            assert float(row[f"{metric}_mean"]) == pytest.approx(np.mean(values))
            assert float(row[f"{metric}_sd"]) == pytest.approx(np.std(values, ddof=1))
            low = high = np.mean(values)
            if np.ptp(values):  # where nothing varies, scipy knows no interval
                low, high = scipy.stats.t.interval(
                    0.95, len(values) - 1, low, scipy.stats.sem(values)
                )
            assert float(row[f"{metric}_ci_low"]) == pytest.approx(low)
            assert float(row[f"{metric}_ci_high"]) == pytest.approx(high)
        if not row["p"]:
            continue
        arm, baseline = (
            _by_seed(runs, name, _headline(arms)) for name in (row["arm"], row["baseline"])
        )
        pairs = [(value, baseline[seed]) for seed, value in arm.items() if seed in baseline]
        ours, theirs = zip(*pairs, strict=True)
        test = scipy.stats.ttest_rel(ours, theirs)
        assert float(row["difference"]) == pytest.approx(np.mean(ours) - np.mean(theirs))
        # Reports of before 2026-11-25 give the numbers of one comparison the plain names.
        is_older = "p_unadjusted" not in row
        size = int(row.get("comparisons") or 1)
        alone, together = {
            False: (("p_unadjusted", "_ci_{}_unadjusted"), ("p", "_ci_{}")),
            True: (("p", "_ci_{}"), ("p_adjusted", "_{}")),
        }[is_older]
        for (p, ends), tests in ((alone, 1), (together, size)):
            if p not in row:  # before 2026-11-22 intervals were of one comparison
                continue
            interval = test.confidence_interval(1 - 0.05 / tests)
            assert float(row[p]) == pytest.approx(min(1, tests * test.pvalue))
            for end in ("low", "high"):
                found = float(row["difference" + ends.format(end)])
                assert found == pytest.approx(getattr(interval, end))
        assert "comparisons" not in row or size >= family


def test_the_readme_prints_rows_of_the_published_table() -> None:
    printed = _cells((ROOT / "README.md").read_text(), "erm", "midpoint", "**uniform**")
    (quickstart,) = (folder for folder in PUBLISHED if folder.name.endswith("quickstart"))
    published = _cells((quickstart / "table.md").read_text(), "erm", "midpoint", "**uniform**")
    assert len(printed) == 3
    assert printed == [row[: len(printed[0])] for row in published]


def test_a_claim_of_the_readme_is_a_published_verdict_that_holds() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    links = re.findall(r"\[([^]]+)\]\((reports/published/[^)]*verdicts\.csv)\)", readme)
    assert links
    for says, file in links:
        assert (says, "holds") in {(row["says"], row["verdict"]) for row in _rows(ROOT / file)}


def test_every_file_that_the_readme_links_to_exists() -> None:
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / "README.md").read_text())
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


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


def _by_seed(runs: list[dict[str, str]], arm: str, metric: str) -> dict[str, float]:
    confirmed = any(run["arm"] == f"{CONFIRM}{arm}" for run in runs)
    name = f"{CONFIRM}{arm}" if confirmed else arm
    return {run["seed"]: float(run[metric]) for run in runs if run["arm"] == name and run[metric]}


def _cells(text: str, *arms: str) -> list[list[str]]:
    """Return the rows of the tables of a Markdown text whose first cell is one of some arms."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return [row for row in rows if row and row[0] in arms]


def _headline(arms: list[dict[str, str]]) -> str:
    """Return the metric that arms are compared by: the first of the table but for images."""
    means = [name.removesuffix("_mean") for name in arms[0] if name.endswith("_mean")]
    return "test/error" if "test/error" in means else means[0]


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))


VERDICTS = sorted(
    file
    for pattern in ("*/verdicts.csv", "*/*/verdicts.csv")
    for file in (ROOT / "reports" / "published").glob(pattern)
    if "confidence" in file.read_text().partition("\n")[0]
)


@pytest.mark.parametrize("file", VERDICTS, ids=lambda file: file.parent.name)
def test_published_verdicts_follow_from_the_runs_beside_them(file: Path) -> None:
    """By scipy, a few lines apart from the product; shares of few things have wider limits."""
    study = yaml.safe_load(json.loads((file.parent / "provenance.json").read_text())["source"])
    stated = {claim["says"]: claim["that"] for claim in study["claims"]}
    runs = _rows(file.with_name("runs.csv"))
    rows = [row for row in _rows(file) if row["confidence"]]
    assert rows
    for row in rows:
        that = stated[row["says"]]
        relation = next(name for name in that if name in SIDES)
        left, right = that[relation]
        ours = _by_seed(runs, left, that["metric"])
        is_number = not isinstance(right, str)
        theirs = dict.fromkeys(ours, 0.0) if is_number else _by_seed(runs, right, that["metric"])
        values = np.array(
            [ours[s] - that.get("factor", 1) * theirs[s] for s in ours if s in theirs]
        )
        low, high, middle = float(row["low"]), float(row["high"]), right if is_number else 0.0
        assert int(row["n"]) == len(values)
        assert float(row["value"]) == pytest.approx(values.mean())
        level = float(row["confidence"])
        least, most = scipy.stats.t.interval(
            level, len(values) - 1, values.mean(), max(scipy.stats.sem(values), 1e-300)
        )
        is_exact = (low, high) != pytest.approx((least, most), rel=1e-6)
        if is_exact:  # the limits of a share hold its mean and are no narrower than rounding
            assert low <= values.mean() <= high
            assert low < high
        margin = that.get("margin", 0.0)
        ends = SIDES[relation]
        allowed = (middle - margin if ends[0] else -np.inf, middle + margin if ends[1] else np.inf)
        is_inside = allowed[0] <= low and high <= allowed[1]
        is_outside = high < allowed[0] or low > allowed[1]
        expected = "holds" if is_inside else "fails" if is_outside else "undecided"
        assert row["verdict"] == expected
        assert (float(row["p"]) <= 0.05) == (expected != "undecided")
        steps = [0.05 / tests for tests in range(1, len(stated) + 1)]
        assert any(1 - level == pytest.approx(step) for step in steps)


SIDES = {
    "less": (False, True),
    "greater": (True, False),
    "at_most": (False, True),
    "at_least": (True, False),
    "within": (True, True),
}
"""Relation to whether it has an end below and above."""
