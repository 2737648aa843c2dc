"""All other published tables, computed again with NumPy, SciPy and statsmodels.

Tables of runs are computed from runs.csv. Tables of predictions, which are not published, are
compared with the errors in runs.csv and with each other; `tests/reports/tables/test_ensembles.py`
computes them from exported predictions.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from tests.reports.test_recomputed import (
    PUBLISHED,
    Rows,
    Values,
    by_seed,
    facts_of,
    is_interval,
    rows_of,
    source_of,
    study_of,
)


def headline_of(folder: Path) -> str:
    study = study_of(source_of(folder))
    if study.problem.name != "images":
        return study.headline
    return "test/error" if "test/error" in runs_of(folder)[0] else "val/error"


def is_of_last(folder: Path) -> bool:
    """Return True if runs.csv has values of the last epoch, like predictions and curves."""
    return study_of(source_of(folder)).readout.tag == "last"


def runs_of(folder: Path) -> Rows:
    return rows_of(folder / "runs.csv")


def values_of(runs: Rows, arm: str, metric: str) -> Values:
    return np.array(list(by_seed(runs, arm, metric).values()))


def number(row: Mapping[str, str], name: str) -> float:
    return float(row[name]) if row.get(name) else math.nan


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-6, abs=1e-9, nan_ok=True)


def check_summary(row: Mapping[str, str], head: str, values: Values | None, n: int) -> None:
    """Check mean, sd and 95 % interval, from values or from the printed mean, sd and n."""
    mean, sd = number(row, f"{head}mean"), number(row, f"{head}sd")
    low, high = number(row, f"{head}ci_low"), number(row, f"{head}ci_high")
    if values is not None:
        assert (mean, n) == (close(values.mean()), len(values))
        if n > 1 and f"{head}sd" in row:
            assert sd == close(values.std(ddof=1))
        sd = values.std(ddof=1) if n > 1 else math.nan
    half = stats.t.ppf(0.975, n - 1) * sd / math.sqrt(n) if n > 1 else math.nan
    if math.isnan(low) or math.isnan(half):
        assert math.isnan(low) == math.isnan(high)
        return
    is_usual = (low, high) == (close(mean - half), close(mean + half))
    # Cut at a bound, or exact limits of a share; the intervals of the main table have own tests.
    assert is_usual or (low <= mean <= high and (low, high) != (mean, mean)), row


def check_paired(row: Mapping[str, str], differences: Values, names: tuple[str, str, str]) -> None:
    """Check a mean difference, and SciPy's interval and p unless counting sets wider limits."""
    low, high, p = (number(row, name) for name in names)
    assert number(row, "difference") == close(differences.mean())
    sd = differences.std(ddof=1)
    if len(differences) < 2 or math.isnan(low) or sd < 1e-12:
        return
    test = stats.ttest_1samp(differences, 0.0)
    usual = test.confidence_interval(0.95)
    is_usual = (low, high) == (close(usual.low), close(usual.high))
    is_wider = low <= usual.low + 1e-9 and usual.high - 1e-9 <= high
    assert is_usual or is_wider, row
    assert p == close(test.pvalue) or (is_wider and p >= test.pvalue), row


UNADJUSTED = ("difference_ci_low_unadjusted", "difference_ci_high_unadjusted", "p_unadjusted")


def check_unadjusted(row: Mapping[str, str]) -> None:
    """Check interval, p and effect of a difference from its printed mean, sd and n."""
    difference, sd, n = number(row, "difference"), number(row, "difference_sd"), int(row["n"])
    low, high, p = (number(row, name) for name in UNADJUSTED)
    if math.isnan(low) or n < 2 or sd == 0:
        return
    half = stats.t.ppf(0.975, n - 1) * sd / math.sqrt(n)
    is_usual = (low, high) == (close(difference - half), close(difference + half))
    if not is_usual:  # counting or bounds
        assert low <= difference <= high
        return
    t = difference * math.sqrt(n) / sd
    assert p == pytest.approx(2 * stats.t.sf(abs(t), n - 1), rel=1e-5, abs=1e-12)
    if row.get("d"):
        factor = math.exp(math.lgamma((n - 1) / 2) - math.lgamma((n - 2) / 2))
        assert number(row, "d") == close(difference / sd * factor / math.sqrt((n - 1) / 2))


def crossed(folder: Path, rows: Rows) -> None:
    runs, metric = runs_of(folder), headline_of(folder)
    for row in rows:
        law = {"erm": "erm", "uniform": "beta(1.0)"}[row["setting"]]
        a, b, m = (
            values_of(runs, f"law={law} redraw={level}", metric)
            for level in ("nothing", "all", row["source"])
        )
        n = len(a)
        assert int(row["n"]) == n >= 20
        assert number(row, "sd") == close(np.std([*a, *b], ddof=1))
        spread = number(row, "sd") * np.sqrt(
            (2 * n - 1) / stats.chi2.ppf([0.975, 0.025], 2 * n - 1)
        )
        assert (number(row, "sd_low"), number(row, "sd_high")) == (
            close(spread[0]),
            close(spread[1]),
        )

        def parts(keep: Values, a: Values = a, b: Values = b, m: Values = m) -> Values:
            x, y, z = a[keep], b[keep], m[keep]
            variance = (x.var(ddof=1) + y.var(ddof=1)) / 2
            first = ((y - np.mean([*x, *y])) * (z - x)).mean() / variance
            return np.array([first, ((x - z) ** 2).mean() / 2 / variance])

        whole = parts(np.arange(n))
        without = np.array([parts(np.delete(np.arange(n), place)) for place in range(n)])
        error = np.sqrt((n - 1) / n * ((without - without.mean(0)) ** 2).sum(0))
        for name, estimate, half in zip(
            ("first", "total"), whole, stats.t.ppf(0.975, n - 1) * error, strict=True
        ):
            shown = min(1.0, max(0.0, estimate))
            assert number(row, f"{name}_estimate") == close(estimate)
            assert number(row, name) == close(shown)
            ends = (max(0.0, shown - half), min(1.0, shown + half)) if half else (math.nan,) * 2
            assert (number(row, f"{name}_low"), number(row, f"{name}_high")) == (
                close(ends[0]), close(ends[1]),
            )  # fmt: skip


def variation(folder: Path, rows: Rows) -> None:
    runs = runs_of(folder)
    laws = {"erm": "erm", "midpoint": "midpoint", "uniform": "beta(1.0)"}
    for row in rows:
        metric = "test/error_averaged" if row["readout"].startswith("averaged") else "test/error"
        own, whole = (
            values_of(runs, f"law={laws[row['setting']]} vary={source}", metric)
            for source in (row["source"], "all")
        )
        n, sd = len(own), own.std(ddof=1)
        assert (int(row["n"]), number(row, "mean")) == (n, close(own.mean()))
        assert number(row, "sd") == close(sd)
        spread = sd * np.sqrt((n - 1) / stats.chi2.ppf([0.975, 0.025], n - 1))
        assert (number(row, "sd_low"), number(row, "sd_high")) == (
            close(spread[0]),
            close(spread[1]),
        )
        if row["source"] != "all":
            share = (sd / whole.std(ddof=1)) ** 2
            ends = share / stats.f.ppf([0.975, 0.025], n - 1, len(whole) - 1)
            assert number(row, "share") == close(share)
            assert (number(row, "share_low"), number(row, "share_high")) == (
                close(ends[0]), close(ends[1]),
            )  # fmt: skip


def spread(folder: Path, rows: Rows) -> None:
    runs = runs_of(folder)
    for row in rows:
        errors, images = values_of(runs, row["arm"], "test/error"), int(row["images"])
        n, total, noise = len(errors), errors.std(ddof=1), number(row, "noise")
        ends = total * np.sqrt((n - 1) / stats.chi2.ppf([0.975, 0.025], n - 1))
        beyond = [
            math.sqrt(max(0.0, sd**2 - noise**2) * images / (images - 1)) for sd in (total, *ends)
        ]
        assert (int(row["n"]), number(row, "total")) == (n, close(total))
        # p (1 - p) over images, p the share of seeds at which an image is wrong, is concave in p.
        share = errors.mean()
        assert 0 < noise**2 <= share * (1 - share) * n / (n - 1) / images
        assert (number(row, "total_low"), number(row, "total_high")) == (
            close(ends[0]),
            close(ends[1]),
        )
        assert number(row, "distribution") == close(beyond[0])
        if row["distribution_low"]:
            assert number(row, "distribution_low") == close(beyond[1])
            assert number(row, "distribution_high") == close(beyond[2])


def seeds(folder: Path, rows: Rows) -> None:
    runs, metric = runs_of(folder), headline_of(folder)
    study = study_of(source_of(folder))
    baseline = by_seed(runs, study.baseline, metric)
    for row in rows:
        own, seed = by_seed(runs, row["arm"], metric), int(row["seed"])
        assert number(row, "value") == close(own.get(seed, math.nan))
        if row["difference"]:
            assert number(row, "difference") == close(own[seed] - baseline[seed])


def equivalence(folder: Path, rows: Rows) -> None:
    runs, metric = runs_of(folder), headline_of(folder)
    for row in rows:
        own, other = (by_seed(runs, row[side], metric) for side in ("arm", "baseline"))
        shared = sorted(own.keys() & other.keys())
        differences = np.array([own[seed] - other[seed] for seed in shared])
        n, margin = len(shared), number(row, "margin")
        scale = differences.std(ddof=1) / math.sqrt(n)
        t = stats.t(n - 1, loc=differences.mean(), scale=scale)
        assert int(row["n"]) == n
        better, worse = t.cdf(-margin), t.sf(margin)
        if number(row, "p_better") == close(better):
            assert number(row, "p_worse") == close(worse)
            assert number(row, "p_equivalent") == close(1 - better - worse)
        else:  # counting noise makes the posterior wider
            assert number(row, "p_equivalent") <= 1 - better - worse


def references(folder: Path, rows: Rows) -> None:
    runs, study = runs_of(folder), study_of(source_of(folder))
    for row in rows:
        values = values_of(runs, row["arm"], row["metric"])
        assert (int(row["n"]), number(row, "mean")) == (len(values), close(values.mean()))
        printed = (number(row, "ci_low"), number(row, "ci_high"))
        facts = facts_of(study, row["metric"], row["arm"])
        assert is_interval(printed, values, facts, is_older=False), row
        assert number(row, "difference") == close(values.mean() - number(row, "paper"))


def confirmed(folder: Path, rows: Rows) -> None:
    runs = runs_of(folder)
    for row in rows:
        own, other = (by_seed(runs, row[side], "test/error") for side in ("arm", "baseline"))
        differences = np.array([own[seed] - other[seed] for seed in own])
        check_paired(row, differences, ("ci_low", "ci_high", "p"))
    ps = [number(row, "p") for row in rows]
    adjusted = multipletests(ps, method="holm")[1]
    assert all(number(row, "p_adjusted") >= p - 1e-9 for row, p in zip(rows, ps, strict=True))
    assert all(number(row, "p_holm") >= p - 1e-9 for row, p in zip(rows, adjusted, strict=True))


def points(folder: Path, rows: Rows) -> None:
    runs = runs_of(folder)
    objective = next(name for name in rows[0] if name.endswith("_mean")).removesuffix("_mean")
    for row in rows:
        found = {
            int(run["seed"]): float(run[objective])
            for run in runs
            if run["arm"] == row["arm"] and run[objective]
        }
        if found and row["state"] == "complete" and is_of_last(folder):
            values = np.array(list(found.values()))
            assert number(row, f"{objective}_mean") == close(values.mean())
            assert number(row, f"{objective}_sd") == close(values.std(ddof=1))
            assert int(row["n"]) == len(values)
    ranked = [number(row, f"{objective}_mean") for row in rows if row["rank"]]
    assert ranked == sorted(ranked)


def sensitivity(folder: Path, rows: Rows) -> None:
    runs, metric = runs_of(folder), headline_of(folder)
    for row in rows:
        if "difference_sd" in row:
            check_unadjusted(row)
        is_averaged = row["readout"].startswith("averaged") and is_of_last(folder)
        averaged = f"{metric}_averaged" if is_averaged else ""
        name = metric if row["is_primary"] == "true" else averaged
        if name not in runs[0]:
            continue
        own, other = (by_seed(runs, row[side], name) for side in ("arm", "baseline"))
        shared = sorted(own.keys() & other.keys())
        differences = np.array([own[seed] - other[seed] for seed in shared])
        assert number(row, "difference") == close(differences.mean())
        assert number(row, "difference_sd" if "difference_sd" in row else "sd") == close(
            differences.std(ddof=1)
        )
    assert any(row["is_primary"] == "true" for row in rows)


def calibration(folder: Path, rows: Rows) -> None:
    runs = runs_of(folder)
    measured = "test/calibration_error"
    for row in rows:
        values = values_of(runs, row["arm"], measured)
        # The run bins single, the report double precision: an image on an edge may move.
        if is_of_last(folder):
            assert number(row, "calibration_error_mean") == pytest.approx(values.mean(), abs=2e-3)
        for name in row:
            if name.endswith("_mean"):
                check_summary(row, name.removesuffix("mean"), None, int(row["n"]))


def ensembles(folder: Path, rows: Rows) -> None:
    runs = runs_of(folder)
    for row in rows:
        error = values_of(runs, row["arm"], "test/error").mean()
        if is_of_last(folder):
            assert number(row, "error") == pytest.approx(error, abs=2e-4)
        assert number(row, "gain") == close(number(row, "error") - number(row, "ensemble_error"))
        assert number(row, "gain_low") < number(row, "gain") < number(row, "gain_high")
        for head in ("disagreement_", "pair_gain_"):
            if row[f"{head}mean"]:
                check_summary(row, head, None, min(20, int(row["n"])))


def ensemble_sizes(folder: Path, rows: Rows) -> None:
    for arm in {row["arm"] for row in rows}:
        own = [row for row in rows if row["arm"] == arm]
        sizes = [int(row["size"]) for row in own]
        assert sizes == sorted(sizes)
        assert sizes[-1] == int(own[0]["n"])
        for row in own:
            n, size = int(row["n"]), int(row["size"])
            every = math.comb(n, size)
            assert (int(row["ensembles"]) == every) == (row["is_complete"] == "true")
            for name in ("error", "nll", "brier", "calibration_error"):
                mean = number(row, f"{name}_mean")
                assert number(row, f"{name}_image_low") < mean < number(row, f"{name}_image_high")
        # The mean of convex losses of a mixture falls with each network.
        for name in ("nll", "brier"):
            complete = [number(row, f"{name}_mean") for row in own if row["is_complete"] == "true"]
            assert complete == sorted(complete, reverse=True)


def classes(folder: Path, rows: Rows) -> None:
    runs = runs_of(folder)
    for arm in {row["arm"] for row in rows}:
        own = [row for row in rows if row["arm"] == arm]
        for row in own:
            check_summary(row, "error_", None, int(row["n"]))
        source = str(source_of(folder))
        # Noise in test labels moves images from class to class.
        has_equal_classes = "fashion" in source and "noise_in_test" not in source
        if is_of_last(folder) and has_equal_classes:
            mean = np.mean([number(row, "error_mean") for row in own])
            assert mean == pytest.approx(values_of(runs, arm, "test/error").mean(), abs=2e-4)


def class_differences(folder: Path, rows: Rows) -> None:
    runs, study = runs_of(folder), study_of(source_of(folder))
    baseline = by_seed(runs, study.baseline, "test/error")
    for arm in {row["arm"] for row in rows}:
        own = [row for row in rows if row["arm"] == arm]
        errors = by_seed(runs, arm, "test/error")
        images = np.array([float(row["images"]) for row in own])
        parts = np.array([number(row, "difference") for row in own])
        whole = np.mean([errors[seed] - baseline[seed] for seed in errors])
        assert (parts * images).sum() / images.sum() == pytest.approx(whole, abs=2e-4)
        for row in own:
            check_unadjusted(row)
    tests = len(rows)
    for row in rows:
        bonferroni = min(1.0, tests * number(row, "p_unadjusted"))
        if row["p"]:
            assert number(row, "p") == pytest.approx(bonferroni, rel=1e-6)


CHECKS: Mapping[str, Callable[[Path, Rows], None]] = {
    check.__name__: check
    for check in (
        crossed, variation, spread, seeds, equivalence, references, confirmed, points, sensitivity,
        calibration, ensembles, ensemble_sizes, classes, class_differences,
    )
}  # fmt: skip

ELSEWHERE = {
    "runs": "the numbers that all others are computed from",
    "table": "test_recomputed",
    "verdicts": "test_recomputed",
    "looks": "test_recomputed",
    "joined": "test_published",
    "joined_last_epoch": "test_published",
    "joined_runs": "test_published",
    "joined_verdicts": "test_published",
}
"""Files that have their own tests."""

FILES = sorted(
    file
    for file in PUBLISHED.glob("*/*.csv")
    if file.parent.name != "measurements" and file.stem not in ELSEWHERE
)


def of(file: Path) -> str:
    return str(file.relative_to(PUBLISHED))


@pytest.mark.parametrize("file", FILES, ids=of)
def test_every_published_table_follows_from_its_runs(file: Path) -> None:
    rows = rows_of(file)
    assert rows
    CHECKS[file.stem](file.parent, rows)


def test_every_kind_of_published_table_is_recomputed() -> None:
    assert {file.stem for file in FILES} == CHECKS.keys()
