"""Tests of the figures of final values."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from scipy import stats

from mixup_core.config.building import with_values
from reports.figures.canvas import Figure
from reports.figures.final import draw_ranks
from reports.numbers.runs import arrange
from reports.tables.table import tabulate
from sweeps.study.study import Study
from tests.reports.drawn import draw, numbers_of
from tests.reports.synthetic import (
    AT_A_BOUND,
    FINISHED,
    SMALL,
    at_a_bound,
    ended,
    make_study,
    with_metrics,
)


def test_final_numbers_contain_every_seed_and_the_paired_differences() -> None:
    lines = numbers_of(draw(SMALL, FINISHED)["final_values"])
    means = {(line["shown"], line["arm"]): float(line["mean"]) for line in lines if line["mean"]}
    rows = {row.arm: row for row in tabulate(SMALL, FINISHED).rows}
    assert means["difference", "midpoint"] == rows["midpoint"].compared.comparison.difference
    assert ("difference", "erm") not in means
    assert sum(line["shown"] == "value" and line["seed"] != "" for line in lines) == 15


@pytest.mark.parametrize("errors", AT_A_BOUND)
def test_the_drawn_interval_equals_the_interval_in_the_table(errors: Sequence[float]) -> None:
    results = at_a_bound(SMALL, errors)
    lines = numbers_of(draw(SMALL, results)["final_values"])
    drawn = {
        line["arm"]: (float(line["ci_low"]), float(line["ci_high"]))
        for line in lines
        if line["shown"] == "value" and line["mean"]
    }
    told = {row.arm: row.summaries["test/error"] for row in tabulate(SMALL, results).rows}
    assert drawn == {arm: (summary.ci_low, summary.ci_high) for arm, summary in told.items()}
    assert all(0 <= low < high <= 1 for low, high in drawn.values())


ARMS = ("a", "b", "c", "d", "e", "f")
ERRORS = {"a": 0.30, "b": 0.20, "c": 0.201, "d": 0.25, "e": 0.20, "f": 0.10}
JITTER = (0.0, 0.002, -0.001, 0.003, -0.002)


def _ranks(study: Study, missing: frozenset[tuple[str, int]] = frozenset()) -> Figure | None:
    ends = {
        (arm, seed): {"error": ERRORS[arm] + JITTER[(seed + 2 * place) % 5]}
        for place, arm in enumerate(study.arms)
        for seed in study.seeds
    }
    results = tuple(run for run in ended(study, ends) if (run.run.arm, run.run.seed) not in missing)
    return draw_ranks(study, arrange(study, results), tabulate(study, results))


def test_pairs_of_arms_are_compared_with_holm_adjusted_p_values() -> None:
    figure = _ranks(make_study(ARMS))
    lines = numbers_of(figure)
    assert len(lines) == 15
    assert lines[0]["better"] == "f"
    assert {line["worse"] for line in lines[-1:]} == {"a"}
    p = {frozenset((line["better"], line["worse"])): float(line["p"]) for line in lines}
    one, other = ([ERRORS[arm] + JITTER[(s + 2 * i) % 5] for s in range(5)]
                  for i, arm in ((0, "a"), (3, "d")))  # fmt: skip
    assert p[frozenset("ad")] == pytest.approx(stats.ttest_rel(one, other).pvalue)
    ordered = sorted(lines, key=lambda line: float(line["p"]))
    assert float(ordered[0]["p_holm"]) == pytest.approx(15 * float(ordered[0]["p"]))
    apart = [line for line in lines if float(line["p_holm"]) <= 0.05]
    assert f"{len(apart)} of 15" in figure.caption
    assert {"f"} < {line["better"] for line in apart}
    assert not any({line["better"], line["worse"]} == {"b", "e"} for line in apart)


@pytest.mark.parametrize("without", [("midpoint",), tuple(SMALL.arms)])
def test_an_arm_without_a_mean_in_the_table_has_dots_but_no_mean(without: tuple[str, ...]) -> None:
    results = tuple(
        with_metrics(result, lambda record: {"train/loss": record.metrics["train/loss"]})
        if result.run.arm in without and result.run.seed == 0
        else result
        for result in FINISHED
    )
    lines = numbers_of(draw(SMALL, results)["final_values"])
    shown = [line for line in lines if line["shown"] == "value"]
    assert {line["arm"] for line in shown if line["mean"]} == SMALL.arms.keys() - {*without}
    assert {line["arm"] for line in shown if line["value"]} == SMALL.arms.keys()


def test_there_is_no_rank_figure_for_few_arms_unequal_seeds_or_other_images() -> None:
    study = make_study(ARMS)
    assert _ranks(make_study(ARMS[:5])) is None
    assert _ranks(study, frozenset({("c", 4)})) is None
    other = with_values(study.arms["c"], {"data.val_size": 1000})
    assert _ranks(replace(study, arms={**study.arms, "c": other})) is None
