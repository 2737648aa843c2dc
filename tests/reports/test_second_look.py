"""Every number of a report, computed again with SciPy from the `runs.csv` beside it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from reports.pages.build import draft_report
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.study import Study
from tests.reports.synthetic import ended, make_study, rows_of

CLAIMS = (
    ("less", "uniform", "erm", None),
    ("greater", "uniform", "midpoint", None),
    ("at_most", "uniform", 0.2, 0.02),
    ("within", "midpoint", "erm", 0.02),
)
MARGIN = 0.005

Rows = Sequence[Mapping[str, str]]


def claimed(place: int) -> Claim:
    relation, left, right, margin = CLAIMS[place]
    sides: dict[str, Any] = {relation: (left, right)}
    return Claim(
        says=str(place), source="a paper",
        that=StatedComparison(metric="test/error", margin=margin, **sides),
    )  # fmt: skip


@pytest.fixture(scope="module")
def study() -> Study:
    return replace(
        make_study(seeds=tuple(range(8))),
        claims=tuple(map(claimed, range(len(CLAIMS)))),
        equivalence=MARGIN,
        references={"uniform": {"test/error": 0.2, "test/nll": 0.5}},
    )


@pytest.fixture(scope="module")
def folder(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report in which one run of midpoint is unfinished."""
    out = tmp_path_factory.mktemp("report")
    unfinished = ended(study, {("midpoint", 3): {"epochs": 4}})
    draft_report(study, unfinished, data_checksums={}, command="mixsweep").write(out)
    return out


def read(folder: Path, name: str) -> Rows:
    return rows_of((folder / name).read_text())


def by_seed(runs: Rows, arm: str, metric: str = "test/error") -> dict[str, float]:
    return {run["seed"]: float(run[metric]) for run in runs if run["arm"] == arm and run[metric]}


def paired(runs: Rows, arm: str, against: str | float) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of two arms at their common seeds."""
    ours = by_seed(runs, arm)
    theirs = by_seed(runs, against) if isinstance(against, str) else dict.fromkeys(ours, against)
    shared = [seed for seed in ours if seed in theirs]
    return np.array([ours[s] for s in shared]), np.array([theirs[s] for s in shared])


def test_effect_sizes_and_sign_flip_p_values_agree_with_scipy(folder: Path) -> None:
    runs, rows = read(folder, "runs.csv"), read(folder, "table.csv")
    family = {}
    for arm, against in (("midpoint", "erm"), ("uniform", "erm")):
        ours, theirs = paired(runs, arm, against)
        flipped = scipy.stats.permutation_test(
            (ours - theirs,), np.sum, permutation_type="samples", n_resamples=np.inf
        )
        family[f"{arm} {against}"] = float(flipped.pvalue)
    for row in rows[1:]:
        ours, theirs = paired(runs, row["arm"], "erm")
        n, d = len(ours), np.mean(ours - theirs) / np.std(ours - theirs, ddof=1)
        hedges = math.gamma((n - 1) / 2) / math.gamma((n - 2) / 2) / math.sqrt((n - 1) / 2)
        assert float(row["d"]) == pytest.approx(d * hedges)
        t = d * math.sqrt(n)
        upper, lower = (
            scipy.stats.nct.cdf(t, n - 1, float(row[name]) * math.sqrt(n))
            for name in ("d_ci_low_unadjusted", "d_ci_high_unadjusted")
        )
        assert (upper, lower) == pytest.approx((0.975, 0.025), abs=1e-4)
        name = f"{row['arm']} erm"
        assert float(row["sign_flip_p_unadjusted"]) == pytest.approx(family[name])
        assert float(row["sign_flip_p"]) == pytest.approx(min(1, 2 * family[name]))


def decided(relation: str, low: float, high: float, value: float, margin: float | None) -> bool:
    """Return whether an interval lies on one side of the allowed values."""
    ends = {
        "less": (-math.inf, value),
        "greater": (value, math.inf),
        "at_most": (-math.inf, value + (margin or 0)),
        "within": (value - (margin or 0), value + (margin or 0)),
    }[relation]
    return (ends[0] < low and high < ends[1]) or high < ends[0] or low > ends[1]


def test_verdicts_follow_from_the_runs_by_holm_over_the_claims(folder: Path) -> None:
    runs, rows = read(folder, "runs.csv"), read(folder, "tables/verdicts.csv")
    levels, intervals = {}, {}
    for row, (relation, arm, against, margin) in zip(rows, CLAIMS, strict=True):
        if row["verdict"] == "unfinished":
            assert "midpoint" in (arm, against), "it lacks a seed"
            levels[row["says"]] = 1.0
            continue
        ours, theirs = paired(runs, arm, against)
        number = 0.0 if isinstance(against, str) else against
        test = scipy.stats.ttest_1samp(ours - theirs + number, 0)
        grid = [a for a in 10 ** np.linspace(-6, 0, 2000) if decided(
            relation, *test.confidence_interval(1 - min(a, 0.999999)), number, margin)]  # fmt: skip
        levels[row["says"]] = min(grid, default=1.0)
        assert float(row["value"]) == pytest.approx(np.mean(ours - theirs) + number)
        intervals[row["says"]] = test
    reached, undecided = 0.0, 0
    for rank, says in enumerate(sorted(levels, key=lambda says: levels[says])):
        row = next(row for row in rows if row["says"] == says)
        reached = min(1.0, max(reached, (len(levels) - rank) * levels[says]))
        undecided = undecided or (len(levels) - rank) * (reached > 0.05)
        if says not in intervals:
            continue
        assert float(row["p"]) == pytest.approx(reached, rel=0.02)
        level = 1 - 0.05 / (undecided or len(levels) - rank)
        assert float(row["confidence"]) == pytest.approx(level)
        interval = intervals[says].confidence_interval(level)
        assert (float(row["low"]), float(row["high"])) == pytest.approx(tuple(interval))
        assert (row["verdict"] != "undecided") == (reached <= 0.05)
    assert [row["verdict"] for row in rows] == ["holds", "unfinished", "holds", "unfinished"]


def test_primary_rows_of_the_sensitivity_table_equal_the_main_table(folder: Path) -> None:
    """Rows of other read-outs need more than `runs.csv`."""
    table = {row["arm"]: row for row in read(folder, "table.csv")}
    rows = [row for row in read(folder, "tables/sensitivity.csv") if row["is_primary"] == "true"]
    same = ("n", "difference", "p", "p_unadjusted", "difference_ci_low", "difference_ci_high")
    against_erm = [row for row in rows if row["baseline"] == "erm"]
    assert [row["arm"] for row in against_erm] == ["midpoint", "uniform"]
    for row in against_erm:
        own = {**table[row["arm"]], "n": table[row["arm"]]["seeds_shared"]}
        assert [row[name] for name in same] == [own[name] for name in same]
