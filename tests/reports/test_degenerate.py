"""Degenerate results: tables and figures never state more than the runs can show."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from mixup_core.predictions import Predictions, Split
from mixup_core.problem import MAX_SEED
from reports.numbers.predicted import ReadPredictions
from reports.pages.build import draft_report
from sweeps.state.results import RunResult
from sweeps.study.study import Run, Study
from tests.reports.synthetic import claim, finish, make_study, rows_of
from tests.reports.synthetic_predictions import split_of

ARMS = ("erm", "midpoint", "uniform")
METRICS = ("test/error", "test/nll", "test/calibration_error", "predicted/brier")


CLAIMS = tuple(
    replace(made, says=f"{metric} {number}")
    for metric in METRICS
    for number, made in enumerate(
        (
            claim("less", metric=metric),
            claim("within", "midpoint", metric=metric, margin=0.002),
            claim("less", ("uniform", "erm"), ("midpoint", "erm"), metric=metric),
            claim("at_most", "erm", 0.3, metric=metric, margin=0.01),
            claim("greater", "erm", 0.02, metric=metric),
        )
    )
)

Ends = Callable[[Run], float | None]
"""Final test error of each run; None: the run has no record; NaN: the run diverged."""


def by_arm(**values: float) -> Ends:
    return lambda run: values[run.arm]


def noisy(run: Run) -> float:
    return round(0.2 + 0.01 * ARMS.index(run.arm) + 0.003 * (run.seed % 3), 4)


CASES: dict[str, tuple[int, Ends]] = {
    "one seed": (1, noisy),
    "two seeds": (2, noisy),
    "two seeds with equal differences": (
        2, lambda run: 0.2 + 10 / 360 * ARMS.index(run.arm) + 0.01 * run.seed,
    ),
    "all seeds equal": (5, by_arm(erm=0.2, midpoint=0.19, uniform=0.18)),
    "all arms equal": (5, by_arm(erm=0.2, midpoint=0.2, uniform=0.2)),
    "all right": (5, by_arm(erm=0.0, midpoint=0.0, uniform=0.0)),
    "all wrong": (5, by_arm(erm=1.0, midpoint=1.0, uniform=1.0)),
    "opposite ends": (5, by_arm(erm=1.0, midpoint=0.5, uniform=0.0)),
    "opposite ends at two seeds": (2, by_arm(erm=1.0, midpoint=0.5, uniform=0.0)),
    "near an end": (3, lambda run: 0.0 if run.seed else 0.01),
    "zeros and ones": (5, lambda run: float(run.seed % 2)),
    "equal differences": (5, lambda run: 0.2 + 0.01 * ARMS.index(run.arm) + 0.003 * run.seed),
    "equal but for rounding": (5, lambda run: 0.2 + 1e-15 * (run.seed + ARMS.index(run.arm))),
    "one seed missing in one arm": (
        5, lambda run: None if (run.arm, run.seed) == ("uniform", 3) else noisy(run),
    ),
    "no seed shared": (
        4, lambda run: noisy(run) if (run.seed < 2) == (run.arm == "erm") else None,
    ),
    "one seed shared": (
        4, lambda run: noisy(run) if run.arm == "erm" or run.seed == 1 else None,
    ),
    "one seed diverged": (
        5, lambda run: math.nan if (run.arm, run.seed) == ("uniform", 3) else noisy(run),
    ),
    "an arm diverged": (3, lambda run: math.nan if run.arm == "erm" else noisy(run)),
    "nothing yet": (3, lambda run: None),
}  # fmt: skip


def results_of(study: Study, ends: Ends) -> list[RunResult]:
    found = []
    for run in study.runs():
        error = ends(run)
        if error is None:
            continue
        if math.isnan(error):
            failure = "the loss is not finite"
            found.append(finish(run, 0.9, epochs=3, failure=failure, kind="diverged"))
        else:
            found.append(finish(run, error))
    return found


def predictions_of(ends: Ends) -> ReadPredictions:
    """Return a reader of predictions with the error of the record."""

    def read(result: RunResult) -> Predictions | None:
        error = ends(result.run)
        if error is None or math.isnan(error):
            return None
        whole = split_of("erm", 0, size=200)
        wrong = np.arange(200) < round(200 * error)
        given = np.where(wrong, (whole.labels + 1) % 4, whole.labels)
        logits = (5 * np.eye(4)[given]).astype(np.float32)
        split = Split(labels=whole.labels, images=whole.images, logits={"": logits})
        return Predictions(splits={"test": split})

    return lambda results: list(map(read, results))


@pytest.fixture(scope="module", params=CASES)
def contents(request: pytest.FixtureRequest) -> Mapping[str, str]:
    seeds, ends = CASES[request.param]
    study = replace(make_study(seeds=tuple(range(seeds))), claims=CLAIMS, equivalence=0.003)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reports.pages.build.draw_curves", lambda *_: None)
        draft = draft_report(
            study, results_of(study, ends), data_checksums={}, command="report small",
            predictions=predictions_of(ends),
        )  # fmt: skip
    return {name: str(text) for name, text in draft.contents.items() if not name.endswith("png")}


def tables(contents: Mapping[str, str]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    yield from ((name, rows_of(t)) for name, t in contents.items() if name.endswith(".csv"))


def intervals(rows: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each column of lower ends, with both ends of each row."""
    for row in rows:
        for name in row:
            if re.search(r"low(_unadjusted)?$", name):
                yield name, row[name], row[name.replace("low", "high")]


NOT_OF_RUNS = {"figures/reliability.csv"}
"""Files whose columns `low` and `high` are ends of bins."""


def test_intervals_have_a_width_and_stay_within_the_bounds(contents: Mapping[str, str]) -> None:
    for name, rows in tables(contents):
        if name in NOT_OF_RUNS:
            continue
        for column, low, high in intervals(rows):
            where = name, column, low, high
            assert (low == "") == (high == ""), where
            if not low:
                continue
            assert float(low) < float(high), where
            of_share = re.search(r"error|gain|disagreement|difference", f"{column}{name}")
            if of_share and not re.search(r"nll|brier|d_|seconds", column):
                assert -1 <= float(low) <= float(high) <= 1, where
            is_level = re.search(r"(^|/)(error|ensemble_error|disagreement)|_error_ci", column)
            if is_level and "difference" not in column:
                assert float(low) >= 0, where


def test_no_p_value_is_computed_from_an_unknown_spread(contents: Mapping[str, str]) -> None:
    for name, rows in tables(contents):
        for row in rows:
            ps = {key: float(p) for key, p in row.items() if re.search(r"(^|_)p(_|$)", key) and p}
            if not ps:
                continue
            n = int(row.get("n") or 2)
            assert n >= 2, (name, row)
            assert all(0 < p <= 1 for p in ps.values()), (name, row)
            spread = row.get("difference_sd", "")
            if n == 2 and spread and float(spread) < 1e-12:
                raise AssertionError((name, row))


def test_a_decided_claim_has_two_seeds_a_width_and_p_of_at_most_5_percent(
    contents: Mapping[str, str],
) -> None:
    for row in rows_of(contents["tables/verdicts.csv"]):
        assert row["verdict"] in {"holds", "fails", "undecided", "unfinished"}
        if row["verdict"] in {"holds", "fails"}:
            assert int(row["n"]) >= 2
            assert float(row["p"]) <= 0.05
            assert float(row["low"]) < float(row["high"])
        else:
            assert not row["p"] or float(row["p"]) > 0.05


def test_an_arm_that_lacks_seeds_is_not_the_best_arm(contents: Mapping[str, str]) -> None:
    rows = {row["arm"]: row for row in rows_of(contents["table.csv"])}
    lines = [line for line in contents["table.md"].splitlines() if line.startswith("| **")]
    for line in lines:
        row = rows[line.split("**")[1]]
        assert row["n"] == row["seeds_expected"]
        assert int(row["n"]) >= 2
    values = {row["test/error_mean"] for row in rows.values() if row["test/error_mean"]}
    if len(values) == 1 and len(rows) > 1:
        told = [row for row in rows.values() if row["p"] and float(row["p"]) <= 0.05]
        assert not told


def test_no_printed_number_is_nan_and_no_interval_is_empty(
    contents: Mapping[str, str],
) -> None:
    for name, text in contents.items():
        if name.endswith((".md", ".tex", ".csv", ".txt")):
            assert not re.search(r"\b(nan|inf|None)\b", text), (name, text)
        if name.endswith((".md", ".tex", ".txt")):
            assert not re.search(r"\[(-?[\d.]+), \1\]", text), (name, text)
            assert not re.search(r"± 0(\.0*)?(?!\.?\d)", text), (name, text)
    json.loads(contents["provenance.json"], parse_constant=pytest.fail)


def test_seeds_that_are_hashes_cost_no_memory_and_keep_their_digits() -> None:
    seeds = (42, 20_261_128, 4_000_000_000, MAX_SEED)
    study = make_study(ARMS, seeds)
    results = tuple(finish(run, noisy(run)) for run in study.runs())
    draft = draft_report(study, results, data_checksums={}, command="")
    assert f"over seeds 42, 20261128, 4000000000, {MAX_SEED}." in draft.table.caption
    texts = [text for text in draft.contents.values() if isinstance(text, str)]
    for name in ("runs.csv", "tables/seeds.csv", "tables/seeds.md"):
        assert str(MAX_SEED) in str(draft.contents[name])
    digits = re.findall(r"922337[0-9]{5,}", " ".join(texts))
    assert set(digits) == {str(MAX_SEED)}
