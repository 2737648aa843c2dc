"""Numbers of published figures, computed again with NumPy, SciPy and statsmodels."""

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from tests.reports.test_recomputed import (
    PUBLISHED,
    Rows,
    by_seed,
    facts_of,
    interval_of,
    rows_of,
    source_of,
    study_of,
)
from tests.reports.test_recomputed_listings import (
    check_summary,
    close,
    headline_of,
    is_of_last,
    number,
    of,
    runs_of,
    values_of,
)


def final_values(folder: Path, rows: Rows) -> None:
    runs, metric = runs_of(folder), headline_of(folder)
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row["shown"] == "value" and row["seed"]:
            own = by_seed(runs, row["arm"], metric)
            assert number(row, "value") == close(own[int(row["seed"])])
            found.setdefault((row["shown"], row["arm"]), {})[int(row["seed"])] = number(
                row, "value"
            )
    for row in rows:
        if row["mean"] and row["shown"] == "value":
            values = np.array(list(found["value", row["arm"]].values()))
            assert (int(row["n"]), number(row, "mean")) == (len(values), close(values.mean()))


def ranks(folder: Path, rows: Rows) -> None:
    runs, metric = runs_of(folder), headline_of(folder)
    study = study_of(source_of(folder))
    for row in rows:
        better, worse = (by_seed(runs, row[side], metric) for side in ("better", "worse"))
        values = {
            "worse": np.array([worse[seed] for seed in sorted(worse)]),
            "better": np.array([better[seed] for seed in sorted(worse)]),
        }
        differences = values["worse"] - values["better"]
        assert number(row, "worse_minus_better") == close(differences.mean())
        facts = {side: facts_of(study, metric, row[side]) for side in values}
        interval = interval_of(values, {"worse": 1.0, "better": -1.0}, facts, 0.95)
        ends = interval or (math.nan, math.nan)
        assert (number(row, "ci_low"), number(row, "ci_high")) == (close(ends[0]), close(ends[1]))
    ps = [number(row, "p") if row["p"] else 1.0 for row in rows]
    for row, p in zip(rows, multipletests(ps, method="holm")[1], strict=True):
        assert number(row, "p_holm") == close(p)


def learning_curves(folder: Path, rows: Rows) -> None:
    runs = runs_of(folder)
    for row in rows:
        values = np.array([float(v) for k, v in row.items() if k.startswith("seed_") and v])
        if len(values) == int(row["n"]):
            check_summary(row, "", values, len(values))
    for metric, arm in {(row["metric"], row["arm"]) for row in rows}:
        own = [row for row in rows if (row["metric"], row["arm"]) == (metric, arm)]
        is_there = metric in runs[0] and is_of_last(folder)
        for seed, value in (by_seed(runs, arm, metric) if is_there else {}).items():
            if own[0].get(f"seed_{seed}"):  # an axis may fall
                ends = {number(own[place], f"seed_{seed}") for place in (0, -1)}
                assert any(end == close(value) for end in ends)


def response(folder: Path, rows: Rows) -> None:
    runs = runs_of(folder)
    for row in rows:
        if row["arm"] and row["metric"] in runs[0]:
            values = values_of(runs, row["arm"], row["metric"])
            if row["mean"] and len(values) == int(row["n"]):
                check_summary(row, "", values, len(values))


def phase_map(folder: Path, rows: Rows) -> None:
    runs, metric = runs_of(folder), headline_of(folder)
    for row in rows:
        values = values_of(runs, row["arm"], metric)
        assert (int(row["n"]), number(row, "mean")) == (len(values), close(values.mean()))


def reliability(folder: Path, rows: Rows) -> None:
    for arm, shown in {(row["arm"], row["shown"]) for row in rows}:
        own = [row for row in rows if (row["arm"], row["shown"]) == (arm, shown)]
        assert sum(number(row, "share") for row in own) == pytest.approx(1)
        for row in own:
            assert number(row, "low") <= number(row, "confidence") <= number(row, "high") + 1e-9
            assert 0 <= number(row, "accuracy") <= 1


def drawn_ensembles(folder: Path, rows: Rows) -> None:
    table = {(row["arm"], row["size"]): row for row in rows_of(folder / "ensemble_sizes.csv")}
    for row in rows:
        of_size, name = table[row["arm"], row["networks"]], row["measure"]
        for column in ("mean", "ci_low", "ci_high", "image_low", "image_high"):
            assert row[column] == of_size[f"{name}_{column}"]


def searched(folder: Path, rows: Rows) -> None:
    for row in rows:
        seeds = [float(v) for k, v in row.items() if re.fullmatch(r"seed_\d+", k) and v]
        if row.get("mean") and seeds and len(seeds) == int(row["n"]):
            check_summary(row, "", np.array(seeds), len(seeds))


def series(folder: Path, rows: Rows) -> None:
    for row in rows:
        values = [float(v) for k, v in row.items() if re.fullmatch(r"seed_\d+", k) and v]
        if len(values) > 1:
            check_summary(row, "", np.array(values), len(values))
        else:
            assert math.isfinite(number(row, "value"))


CHECKS: Mapping[str, Callable[[Path, Rows], None]] = {
    check.__name__: check
    for check in (final_values, ranks, learning_curves, response, phase_map, reliability)
} | {
    "ensembles": drawn_ensembles,
    **dict.fromkeys(("search_history", "search_map", "search_slices"), searched),
    **dict.fromkeys(("series_accuracy", "series_correlation", "series_boundary_at"), series),
}

NO_RESULTS = {
    "decisions": "boundaries of networks, which only the networks give again",
    "schedules": "laws by epoch",
    "search_importance": "by Optuna",
}
"""Figures whose numbers do not come from runs."""


FILES = sorted(file for file in PUBLISHED.glob("*/figures/*.csv") if file.stem not in NO_RESULTS)


@pytest.mark.parametrize("file", FILES, ids=of)
def test_the_numbers_of_every_published_figure_follow_from_its_runs(file: Path) -> None:
    rows = rows_of(file)
    assert rows
    CHECKS[file.stem](file.parent.parent, rows)


def test_every_kind_of_published_figure_is_recomputed() -> None:
    assert {file.stem for file in FILES} == CHECKS.keys()
