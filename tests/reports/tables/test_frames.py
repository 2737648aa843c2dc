"""Frames: results as DataFrames, with each value at its run, epoch or image."""

import io
from collections.abc import Callable, Sequence

import pandas as pd
import pytest

from reports.numbers.runs import runs_csv
from reports.pages.build import report_classes
from reports.tables.frames import (
    arms_frame,
    classes_frame,
    epochs_frame,
    prediction_frames,
    runs_frame,
)
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from tests.reports.synthetic import FINISHED, SMALL, ended, make_study, with_oracle
from tests.reports.synthetic_predictions import reader


@pytest.fixture
def unfinished() -> list[RunResult]:
    """All runs but three: one interrupted, one diverged, and one without results."""
    return ended(
        SMALL,
        {
            ("erm", 3): {"epochs": 2},
            ("midpoint", 1): {"epochs": 4, "failure": "loss is nan", "kind": "diverged"},
            ("uniform", 0): {"epochs": 0},
        },
    )


def by_arm(results: Sequence[RunResult]) -> list[RunResult]:
    return sorted(results, key=lambda result: result.run.arm)


@pytest.mark.parametrize(
    ("frame_of", "text_of"),
    [
        (lambda *made: arms_frame(tabulate(*made)), lambda *made: tabulate(*made).csv()),
        (runs_frame, runs_csv),
    ],
)
def test_the_frames_of_arms_and_runs_equal_their_csv_files_to_every_digit(
    frame_of: Callable[..., pd.DataFrame], text_of: Callable[..., str], unfinished: list[RunResult]
) -> None:
    frame, text = frame_of(SMALL, unfinished), text_of(SMALL, unfinished)
    written = pd.read_csv(io.StringIO(text))
    pd.testing.assert_frame_equal(frame, written, check_dtype=False, rtol=1e-15)
    assert not any(value is None for value in frame.to_numpy().flatten())


def test_a_row_of_the_epochs_frame_has_run_settings_metrics_and_facts(
    unfinished: list[RunResult],
) -> None:
    frame = epochs_frame(SMALL, unfinished[::-1])
    settings = ["config.mix.law", "config.mix.law.alpha"]
    assert list(frame.columns[8:10]) == settings
    laws = dict(frame.groupby("arm")["config.mix.law"].unique())
    assert laws == {"erm": ["erm"], "midpoint": ["midpoint"], "uniform": ["beta"]}
    expected = [
        {"study": "small", "arm": result.run.arm, "seed": result.run.seed}
        | {"run_key": result.run.key, "outcome": result.outcome, "epoch": record.epoch + 1}
        | {"seconds": facts.seconds, "stored_at_ms": facts.stored_at_ms, **record.metrics}
        for result in by_arm(unfinished)
        for record, facts in zip(result.records, result.facts, strict=True)
    ]
    pd.testing.assert_frame_equal(frame.drop(columns=settings), pd.DataFrame(expected))


def test_the_tables_of_epochs_predictions_and_classes_mark_an_oracle() -> None:
    study = with_oracle(SMALL, "uniform")
    results, read = ended(study, {}), reader()
    predictions = pd.concat(prediction_frames(study, results, read))
    assert list(predictions.columns[:5]) == ["study", "arm", "seed", "run_key", "tags"]
    table = report_classes(study, results, history=None, predictions=read)
    for frame in (epochs_frame(study, results), predictions, classes_frame(table)):
        assert dict(frame.groupby("arm")["tags"].first()) == {
            "erm": "", "midpoint": "", "uniform": "oracle",
        }  # fmt: skip


@pytest.mark.parametrize("frame_of", [runs_frame, epochs_frame])
def test_results_of_another_study_are_refused(frame_of: Callable[..., pd.DataFrame]) -> None:
    with pytest.raises(ValueError, match=r"results must belong to runs of the study.*uniform"):
        frame_of(make_study(arms=("erm", "midpoint")), FINISHED)
