"""Web pages that a user opens, loaded in headless Chromium."""

import csv
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mixsweep import read_study
from tests.conftest import CommandLine, CommandLines
from tests.filled import train_into

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
CHARTS = r">\s*error\s*<|test/error"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(BROWSER is None, reason="NOT CHECKED: no Chromium on this machine"),
]


@pytest.fixture(scope="module")
def finished(command_line: CommandLines) -> CommandLine:
    mixsweep = command_line()
    settings = ("digits", "--set", "seeds=1", "--set", "base.epochs=2")
    train_into(mixsweep.home / "store", read_study("digits", *settings[2::2]).runs())
    mixsweep("sync", *settings)
    mixsweep("report", *settings)
    return mixsweep


@pytest.fixture(scope="module")
def links(finished: CommandLine) -> Iterator[dict[str, str]]:
    """Return the links that `mixsweep ui` prints for a finished home, while it serves."""
    with finished.serving("digits") as (server, _):
        said = [server.stdout.readline() for _ in range(4)]
        assert said[0] == "digits\n"
        named = (line.partition("http") for line in said[1:3])
        yield {name.strip(): f"http{link.strip()}" for name, _, link in named}


def _seen(address: str, profile: Path, patience_ms: int) -> str:
    """Return the document of a page after its scripts have run."""
    quiet = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--window-size=1900,1000",
    ]  # fmt: skip
    shown = subprocess.run(
        [BROWSER, *quiet, f"--user-data-dir={profile}", f"--virtual-time-budget={patience_ms}",
         "--dump-dom", address],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return shown.stdout


def _table(page: str) -> list[dict[str, str]]:
    """Return MLflow's table of runs, one dict of cells per row."""
    rows: dict[int, dict[str, str]] = {}
    for part in page.split('row-index="')[1:]:
        cells = rows.setdefault(int(part.partition('"')[0]), {})
        for cell in part.split('role="gridcell" col-id="')[1:]:
            column, _, content = cell.partition('"')
            text = re.sub(
                r"<[^>]*>", " ", content.partition(">")[2].partition('role="gridcell"')[0]
            )
            cells[column.replace("`", "").partition(".")[2]] = text.split("<")[0].strip()
    return [rows[index] for index in sorted(rows)]


def test_the_printed_link_shows_the_arms_sorted_with_their_results(
    finished: CommandLine, links: dict[str, str], tmp_path: Path
) -> None:
    rows = _table(_seen(links["arms"], tmp_path / "profile", 30_000))
    table = list(csv.DictReader(finished.report("digits", "table.csv").decode().splitlines()))
    table.sort(key=lambda arm: float(arm["test/error_mean"]))
    for row, arm in zip(rows, table, strict=True):
        error = float(arm["test/error_mean"])
        assert row["Run Name"].split()[-1] == arm["arm"]
        assert float(row["test/error_mean"]) == error
        assert row["test/error"] == f"{100 * error:.2f} %"
        assert row["n"] == "1/1"
        assert row["mix.law"] in {"erm", "midpoint", "beta"}


def test_the_printed_link_shows_the_learning_curves_of_each_run(
    links: dict[str, str], tmp_path: Path
) -> None:
    # Charts are scripts of their own, which a busy machine loads after the browser's patience.
    for patience in (30_000, 60_000, 120_000):
        page = _seen(links["learning curves"], tmp_path / "profile", patience)
        if re.search(CHARTS, page):
            break
    for run in ("erm seed=0", "midpoint seed=0", "uniform seed=0"):
        assert re.search(rf">\s*{run}\s*<", page), run
    assert re.search(CHARTS, page)
