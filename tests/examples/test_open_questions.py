"""The published verdicts of the open questions, computed again without the code of mixsweep."""

import csv
import math
import statistics
from pathlib import Path
from typing import Any

import pytest
import yaml
from scipy import stats

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTIONS = sorted(file.parent for file in EXAMPLES.glob("*/results"))


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def by_arm(folder: Path, metric: str) -> dict[str, list[float]]:
    """Return the values of each arm in the order of seeds."""
    found: dict[str, dict[int, float]] = {}
    for row in rows_of(folder / "results" / "runs.csv"):
        found.setdefault(row["arm"], {})[int(row["seed"])] = float(row[metric])
    assert len({tuple(sorted(values)) for values in found.values()}) == 1
    return {arm: [values[seed] for seed in sorted(values)] for arm, values in found.items()}


def log_variances(values: list[float]) -> list[float]:
    """Return the pseudo-values of the logarithm of a variance."""
    n, whole = len(values), math.log(statistics.variance(values))
    rest = (values[:place] + values[place + 1 :] for place in range(n))
    return [n * whole - (n - 1) * math.log(statistics.variance(part)) for part in rest]


def terms_of(that: dict[str, Any], values: dict[str, list[float]]) -> list[float]:
    """Return the number of a claim at each seed; for variances, of the logarithm of their ratio."""
    relation = next(name for name in ("less", "within") if name in that)

    def side(names: str | list[str]) -> list[float]:
        if isinstance(names, str):
            return values[names] if "of" not in that else log_variances(values[names])
        one, other = (values[name] for name in names)
        return [a - b for a, b in zip(one, other, strict=True)]

    left, right = map(side, that[relation])
    return [a - b for a, b in zip(left, right, strict=True)]


def p_of(numbers: list[float], margin: float | None) -> float:
    """Return twice the smaller p of the one-sided tests that decide a claim either way."""
    end = 0.0 if margin is None else math.copysign(margin, statistics.fmean(numbers))
    return float(stats.ttest_1samp(numbers, end).pvalue)


@pytest.mark.parametrize("folder", QUESTIONS, ids=lambda folder: folder.name)
def test_verdicts_equal_those_of_a_t_test_holm_and_a_jackknife(folder: Path) -> None:
    study = yaml.safe_load((folder / "study.yaml").read_text(encoding="utf-8"))
    values = by_arm(folder, "test/error")
    told = {row["says"]: row for row in rows_of(folder / "results" / "verdicts.csv")}
    claims = {claim["says"]: claim["that"] for claim in study["claims"]}
    assert told.keys() == claims.keys()
    numbers = {says: terms_of(that, values) for says, that in claims.items()}
    single = {says: p_of(numbers[says], that.get("margin")) for says, that in claims.items()}
    reached, decided = 0.0, True
    for place, says in enumerate(sorted(single, key=lambda says: single[says])):
        row, that, own = told[says], claims[says], numbers[says]
        left = len(single) - place
        reached = min(1.0, max(reached, left * single[says]))
        decided = decided and reached <= 0.05
        mean, test = statistics.fmean(own), stats.ttest_1samp(own, 0)
        expected = [mean, *test.confidence_interval(float(row["confidence"]))]
        if "of" in that:
            expected = [math.exp(value) for value in expected]
        assert [float(row[name]) for name in ("value", "low", "high")] == pytest.approx(expected)
        assert int(row["n"]) == len(own)
        assert float(row["p"]) == pytest.approx(reached, rel=0.02, abs=2e-3)
        margin = that.get("margin", 0.0)
        is_true = abs(mean) <= margin if "margin" in that else mean < 0
        assert row["verdict"] == (("holds" if is_true else "fails") if decided else "undecided")
        assert row["stated"] == "before the runs"


def test_reports_print_the_numbers_of_their_verdicts() -> None:
    for folder in QUESTIONS:
        text = (folder / "README.md").read_text(encoding="utf-8")
        for row in rows_of(folder / "results" / "verdicts.csv"):
            scale = 1 if "variance" in row["says"] else 100
            ends = (f"{scale * float(row[name]):.2f}" for name in ("value", "low", "high"))
            value, low, high = (end.replace("-0.00", "0.00") for end in ends)
            assert f"{value} [{low}, {high}]" in text, (folder.name, row["says"])
