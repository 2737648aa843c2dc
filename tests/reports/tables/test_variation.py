"""Tests of the tables of variation over seeds."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from mixup_core.config.building import with_values
from reports.numbers.runs import arrange
from reports.tables.variation import crossed_table, variation_table
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic import finish, make_study, rows_of

SPREAD = {"all": 0.010, "rounding": 0.002, "order": 0.006}


def study_of(setting: str, values: Iterable[str], seeds: Iterable[int]) -> Study:
    """Return a study that has both arms under each value of a setting."""
    plain = make_study(arms=("erm", "uniform"), seeds=tuple(seeds))
    arms = {
        f"{arm} {value}": with_values(config, {setting: value})
        for arm, config in plain.arms.items()
        for value in values
    }
    return replace(plain, arms=arms, baseline=next(iter(arms)))


def varied_results(study: Study) -> list[RunResult]:
    results = []
    for run in study.runs():
        arm, source = run.arm.split()
        rng = np.random.default_rng([run.seed, len(arm), len(source)])
        results.append(finish(run, 0.2 + SPREAD[source] * float(rng.normal())))
    return results


def test_spread_and_share_in_the_variation_table_follow_from_the_runs() -> None:
    study = study_of("vary", SPREAD, range(1, 7))
    results = varied_results(study)
    listing = variation_table(study, arrange(study, results))
    rows = {(row["setting"], row["source"]): row for row in rows_of(listing.csv())}
    assert list(rows) == [(arm, source) for arm in ("erm", "uniform") for source in SPREAD]
    errors = {
        arm: [r.records[-1].metrics["test/error"] for r in results if r.run.arm == arm]
        for arm in study.arms
    }
    row, sd = rows["erm", "order"], np.std(errors["erm order"], ddof=1)
    assert float(row["sd"]) == pytest.approx(sd)
    ratio = sd**2 / np.var(errors["erm all"], ddof=1)
    assert float(row["share"]) == pytest.approx(ratio)
    low, high = np.sqrt(5 * sd**2 / scipy.stats.chi2.ppf([0.975, 0.025], 5))
    assert (float(row["sd_low"]), float(row["sd_high"])) == pytest.approx((low, high))
    low, high = ratio / scipy.stats.f.ppf([0.975, 0.025], 5, 5)
    assert float(row["share_low"]) == pytest.approx(low)
    assert float(row["share_high"]) == pytest.approx(high)
    assert rows["erm", "all"]["share"] == ""
    mean = np.mean(errors["erm all"])
    noise = 100 * np.sqrt(mean * (1 - mean) / 10_000)
    assert f"test sets (standard deviation {noise:.2f} points)" in listing.caption


LEVELS = ("nothing", "all", "order", "initial-weights")
SIZE = {"order": 0.010, "initial-weights": 0.004}
CROSSED = study_of("redraw", LEVELS, range(30))


def error(arm: str, seed: int) -> float:
    """Return the sum of the effects of order and initial weights, each with its own seed."""
    level = arm.split()[1]
    return 0.2 + sum(
        size * float(np.random.default_rng([seed, level in {source, "all"}, len(source)]).normal())
        for source, size in SIZE.items()
    )


CROSSED_RESULTS = [finish(run, error(run.arm, run.seed)) for run in CROSSED.runs()]


def test_the_crossed_table_shows_the_variance_share_of_each_source() -> None:
    listing = crossed_table(CROSSED, arrange(CROSSED, CROSSED_RESULTS))
    rows = {(row["setting"], row["source"]): row for row in rows_of(listing.csv())}
    assert list(rows) == [(arm, source) for arm in ("erm", "uniform") for source in LEVELS[2:]]
    for (_, source), row in rows.items():
        part = SIZE[source] ** 2 / sum(size**2 for size in SIZE.values())
        assert float(row["first_low"]) <= part <= float(row["first_high"])
        assert float(row["total_low"]) <= part <= float(row["total_high"])
    row = rows["erm", "order"]
    a, b, m = (np.array([error(f"erm {x}", s) for s in range(30)]) for x in LEVELS[:3])
    variance = (a.var(ddof=1) + b.var(ddof=1)) / 2
    assert float(row["total"]) == pytest.approx(np.mean((a - m) ** 2) / 2 / variance)
    assert float(row["sd"]) == pytest.approx(np.std([*a, *b], ddof=1))
    assert row["n"] == "30"


def test_missing_runs_are_shown_as_dashes_in_the_crossed_table() -> None:
    results = [r for r in CROSSED_RESULTS if r.run.arm != "erm order"]
    listing = crossed_table(CROSSED, arrange(CROSSED, results))
    assert listing.cells[0][2:] == ("0", "—", "—", "—")
