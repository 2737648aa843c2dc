"""Tests of decision maps and reliability diagrams."""

from dataclasses import replace

import numpy as np
import pytest

from mixup_core.laws import Midpoint
from mixup_core.problem import problem_of
from mixup_core.theory.moons import MoonsConfig, draw_moons
from reports.figures.canvas import Figure, arm_styles
from reports.figures.predictions import class_shares, draw_decisions, draw_reliability
from reports.numbers.predicted import gather_predictions
from reports.numbers.runs import arrange
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Run, Study
from tests.reports.synthetic import FINISHED, SMALL, rows_of, stored, study_of
from tests.reports.synthetic_predictions import NUM_IMAGES, reader


def trained(run: Run) -> RunResult:
    return stored(run, list(problem_of(run.config).start(run.config, None, "cpu")))


NARROW = MoonsConfig(points=20, hidden=8, resolution=10, steps_per_epoch=3, epochs=1)
MOONS = study_of("moons", {"erm": NARROW, "midpoint": replace(NARROW, law=Midpoint())}, (0, 1))


def draw(study: Study, results: tuple[RunResult, ...]) -> Figure | None:
    return draw_decisions(arrange(study, results), tabulate(study, results))


def test_the_decision_map_is_drawn_from_stored_boundaries() -> None:
    results = tuple(map(trained, MOONS.runs()))
    figure = draw(MOONS, results)
    rows = rows_of(figure.numbers)
    assert len(rows) == 2 * 2 * 17
    stored = {
        (r.run.arm, str(r.run.seed), name.removeprefix("boundary/at/"), repr(value))
        for r in results
        for name, value in r.records[-1].metrics.items()
        if name.startswith("boundary/at/")
    }
    drawn = {(r["arm"], r["seed"], f"{float(r['x_2']):g}", r["boundary"]) for r in rows}
    assert drawn == stored
    for said in ("17 values of x_2", "seed 0", "n = 2/2", "a single boundary"):
        assert said in figure.caption
    for said in (b"<!-- erm -->", b"<!-- midpoint -->"):
        assert said in figure.svg
    lacking = tuple(r for r in results if (r.run.arm, r.run.seed) != ("midpoint", 0))
    assert "seed 0 (in a panel without it, of the arm's first seed)" in draw(MOONS, lacking).caption


def test_the_decision_map_agrees_with_the_predictions_of_the_network() -> None:
    config = replace(NARROW, points=100, hidden=100, steps_per_epoch=200, lr=0.01)
    result = trained(Run(arm="erm", config=config))
    boundary = {
        float(name.removeprefix("boundary/at/")): value
        for name, value in result.records[-1].metrics.items()
        if name.startswith("boundary/at/")
    }
    points, labels = draw_moons(config)
    said = [
        class_shares([boundary], np.array([x]), np.array([np.clip(y, -1.6, 1.6)]))[0, 0]
        for x, y in points
    ]
    assert np.mean(np.array(said) == labels) > 0.9


@pytest.mark.parametrize("has_val", [True, False])
def test_reliability_numbers_cover_every_image_and_give_the_calibration_error(
    has_val: bool,
) -> None:
    predicted = gather_predictions(SMALL, arrange(SMALL, FINISHED), reader(has_val=has_val))
    figure = draw_reliability(predicted, arm_styles(SMALL.arms))
    rows = rows_of(figure.numbers)
    kinds = {"raw", "scaled"} if has_val else {"raw"}
    assert {row["shown"] for row in rows} == kinds
    for arm in SMALL.arms:
        own = [row for row in rows if (row["arm"], row["shown"]) == (arm, "raw")]
        assert sum(int(row["images"]) for row in own) == 5 * NUM_IMAGES
        assert sum(float(row["share"]) for row in own) == pytest.approx(1)
        right = sum(int(row["images"]) * float(row["accuracy"]) for row in own)
        assert 1 - right / (5 * NUM_IMAGES) == pytest.approx(predicted.arms[arm].error)
