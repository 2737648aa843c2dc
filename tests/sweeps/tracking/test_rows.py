import math
from dataclasses import replace
from itertools import pairwise

import pytest
from mlflow.utils.validation import MAX_ENTITY_KEY_LENGTH, validate_param_and_metric_name

from mixup_core.images.problem import IMAGES
from mixup_core.problem import PROBLEMS, Presentation, problem_named, spell_odd_name
from mixup_core.records import EpochRecord
from mixup_core.store.manifests import EpochFacts, Failure
from reports.numbers.summary import summarise_runs
from sweeps.study.readouts import Averaged, EarlyStopping, Last, MeanOfLast
from sweeps.study.study import Study
from sweeps.tracking.rows import (
    MAIN_POINTS,
    OTHER_POINTS,
    LoggedEpoch,
    RunProgress,
    curves,
    headline_name,
    headline_row,
    main_metrics,
)
from tests.sweeps.tracked import NOON_MS, result_of


def test_a_failure_counts_unless_the_run_is_complete(study: Study) -> None:
    run = study.runs()[0]
    failure = Failure(run_key=run.key, kind="failed", message="nan", epoch=1, attempts=1)
    found = [RunProgress.stored(result_of(run, epochs, failure)) for epochs in (2, 3)]
    assert [(one.outcome, one.failure) for one in found] == [("failed", "nan"), ("complete", "")]


def run_of(*values: float, metric: str = "test/error", late: int = 0) -> tuple[LoggedEpoch, ...]:
    return tuple(
        (
            EpochRecord(epoch=epoch, metrics={metric: value}),
            EpochFacts(seconds=1.0, stored_at_ms=NOON_MS + epoch + late),
        )
        for epoch, value in enumerate(values)
    )


def test_a_curve_has_mean_spread_and_interval_at_each_number_of_epochs_trained() -> None:
    rows = list(curves([run_of(0.4, 0.1), run_of(0.6, 0.3, late=7)], IMAGES, summarise_runs))
    by_place = {(row.name, row.step): row for row in rows}
    assert by_place["test/error_mean", 1].value == 0.5
    assert by_place["test/error_mean", 2].value == pytest.approx(0.2)
    assert by_place["test/error_sd", 2].value == pytest.approx(math.sqrt(0.02))
    # t(0.975, 1) = 12.706
    half = 12.706 * math.sqrt(0.02) / math.sqrt(2)
    assert by_place["test/error_ci_low", 2].value == pytest.approx(0.2 - half, rel=1e-3)
    assert by_place["test/error_ci_high", 2].value == pytest.approx(0.2 + half, rel=1e-3)
    assert by_place["test/error_mean", 2].at_ms == NOON_MS + 1 + 7 + 2


def test_a_readout_other_than_the_last_epoch_has_a_separate_metric() -> None:
    seeds = [run_of(0.4, 0.1, 0.3), run_of(0.6, 0.3, 0.5, late=7)]
    assert headline_row(seeds, "test/error", Last(), summarise_runs) is None
    assert headline_name("test/error", Last()) == "test/error_mean"
    row = headline_row(seeds, "test/error", MeanOfLast(evaluations=2), summarise_runs)
    assert row.name == "test/error mean of the last 2 evaluations"
    assert (row.step, row.at_ms, row.value) == (3, NOON_MS + 2 + 7 + 2, pytest.approx(0.3))
    assert headline_row(seeds, "test/error", MeanOfLast(evaluations=4), summarise_runs) is None
    assert headline_name("test/error", Averaged()) == "test/error averaged weights last epoch"


def test_mlflow_accepts_every_metric_with_its_statistic_or_readout() -> None:
    for problem in map(problem_named, PROBLEMS):
        assert spell_odd_name("metric", problem.metrics) is None
        assert spell_odd_name("metric", problem.measuring.predicted) is None
    longest = f"a b.:-/_{'c' * 142}"
    assert spell_odd_name("metric", [longest]) is None
    endless = 2**63 - 1
    readouts = [Averaged(), MeanOfLast(evaluations=endless), EarlyStopping(patience=endless)]
    for name in (
        f"environment.{longest}",
        *summarise_runs([{longest: 0.1}, {longest: 0.2}]),
        *(headline_name(longest, readout) for readout in readouts),
    ):
        assert validate_param_and_metric_name(name)
        assert len(name) <= MAX_ENTITY_KEY_LENGTH


@pytest.mark.parametrize(
    ("metric", "most"), [("test/error", MAIN_POINTS), ("test/own", OTHER_POINTS)]
)
def test_a_long_curve_keeps_its_last_epoch_and_points_evenly_spread(metric: str, most: int) -> None:
    epochs = 7 * MAIN_POINTS + 3
    rows = list(curves([run_of(*[0.1] * epochs, metric=metric)], IMAGES, summarise_runs))
    steps = [row.step for row in rows]
    assert len(steps) == len(set(steps)) == most
    assert steps[-1] == epochs
    gaps = {after - before for before, after in pairwise(steps)}
    assert max(gaps) - min(gaps) <= 1


def test_the_main_metrics_are_the_headline_metrics_of_the_report() -> None:
    measured = {"train/loss", "train/excess_loss", "val/error", "val/nll"}
    assert main_metrics(IMAGES, measured) == ("val/error", "val/nll", "train/excess_loss")
    both = measured | {"test/error", "test/nll"}
    assert main_metrics(IMAGES, both) == ("test/error", "test/nll", "train/excess_loss")
    plain = replace(IMAGES, headline=("x",), presentation=Presentation())
    assert main_metrics(plain, {"x", "y"}) == ("x",)
