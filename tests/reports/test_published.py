"""Published results: what the README claims can be made again from the committed files."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

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


def test_what_the_readme_says_of_another_machine_is_in_its_curves() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    (folder,) = (folder for folder in PUBLISHED if folder.name.endswith("quickstart-amd"))
    rows = _rows(folder / "figures" / "learning_curves.csv")
    errors = {
        arm: [
            np.mean([float(row[f"seed_{seed}"]) for row in own[-3:]])
            for seed in range(5)
        ]
        for arm in ("erm", "midpoint", "uniform")
        for own in ([r for r in rows if (r["metric"], r["arm"]) == ("test/error", arm)
                     and r["seed_0"]],)
    }  # fmt: skip
    for arm in ("midpoint", "uniform"):
        test = scipy.stats.ttest_rel(errors[arm], errors["erm"])
        low, high = (100 * end for end in test.confidence_interval(1 - 0.05 / 2))
        difference = 100 * (np.mean(errors[arm]) - np.mean(errors["erm"]))
        assert f"{difference:.2f} [{low:.2f}, {high:.2f}]" in readme


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


def _by_seed(runs: list[dict[str, str]], arm: str, metric: str) -> dict[str, float]:
    confirmed = any(run["arm"] == f"{CONFIRM}{arm}" for run in runs)
    name = f"{CONFIRM}{arm}" if confirmed else arm
    return {run["seed"]: float(run[metric]) for run in runs if run["arm"] == name and run[metric]}


def _headline(arms: list[dict[str, str]]) -> str:
    """Return the metric that arms are compared by: the first of the table but for images."""
    means = [name.removesuffix("_mean") for name in arms[0] if name.endswith("_mean")]
    return "test/error" if "test/error" in means else means[0]


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))
