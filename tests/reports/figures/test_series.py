from dataclasses import replace

import pytest

from mixup_core.problem import PROBLEMS, Metric, Series
from mixup_core.records import EpochRecord
from reports.figures.canvas import Figure, arm_styles
from reports.figures.series import draw_series
from reports.numbers.runs import arrange
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Run, Study
from tests.reports.decay import DECAY, decay_study, decayed
from tests.reports.drawn import numbers_of
from tests.reports.synthetic import with_metrics

PARTS = Series(head="part", metric=Metric(label="weight of a part", unit="%"))
PLACES = Series(head="edge/at", metric=Metric(label="edge", least=-3.0), along="height")


def measured(run: Run) -> RunResult:
    """Add two parts of a series, a metric with the same prefix, and an axis of three positions."""

    def metrics(record: EpochRecord) -> dict[str, float]:
        places = {f"edge/at/{place}": place * record.epoch + run.seed for place in (1, -1, 0)}
        parts = {"part/b": 0.1 * record.epoch + run.seed, "part/a": 0.5, "part/mean": 0.3}
        return {**record.metrics, **parts, **places}

    return with_metrics(decayed(run), metrics)


@pytest.fixture
def study(decay: None) -> Study:
    metrics = {**DECAY.metrics, "part/mean": Metric(label="mean")}
    presentation = replace(DECAY.presentation, series=(PARTS, PLACES))
    problem = replace(DECAY, metrics=metrics, presentation=presentation)
    PROBLEMS.remove(DECAY.name)
    PROBLEMS.add(problem)
    return decay_study()


def draw(study: Study, results: tuple[RunResult, ...]) -> dict[str, Figure]:
    table = tabulate(study, results)
    figures = draw_series(arrange(study, results), table, arm_styles(study.arms))
    return {figure.name: figure for figure in figures}


def test_each_part_of_a_series_is_drawn_along_the_axis_for_one_seed(study: Study) -> None:
    results = tuple(measured(run) for run in study.runs() if (run.arm, run.seed) != ("rate 1", 0))
    figures = draw(study, results)
    assert list(figures) == ["series_part", "series_edge_at"]
    rows = numbers_of(figures["series_part"])
    assert {row["seed"] for row in rows} == {"1"}
    assert {row["part"] for row in rows} == {"a", "b"}
    of_part = [row for row in rows if (row["arm"], row["part"]) == ("rate 2", "b")]
    assert [float(row["value"]) for row in of_part] == [1.0, 1.1, 1.2, 1.3]
    assert [row["time"] for row in rows[:4]] == ["1.0", "10.0", "100.0", "1000.0"]


def test_arms_of_unequal_seeds_have_the_same_columns(study: Study) -> None:
    study = replace(study, reached={"rate 1": 1})
    rows = numbers_of(draw(study, tuple(map(measured, study.runs())))["series_edge_at"])
    assert [row["seed_2"] for row in rows if row["part"] == "0.0"] == ["", "2"]
