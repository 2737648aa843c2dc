import csv
import io
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

from decay import decay_study, decayed
from synthetic import make_study

from reports.colours import arm_looks
from reports.figures import Figure
from reports.response_figures import draw_responses
from reports.tables import tabulate
from sweeps.results import RunResult
from sweeps.study import Study


def draw(study: Study, results: tuple[RunResult, ...]) -> dict[str, Figure]:
    figures = draw_responses(study, tabulate(study, results), arm_looks(study.arms))
    return {figure.name: figure for figure in figures}


def rows_of(figure: Figure) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(figure.numbers)))


def test_results_stand_along_the_number_that_arms_differ_in(decay: None) -> None:
    study = decay_study(rates=(4.0, 1.0, 2.0))
    figures = draw(study, tuple(map(decayed, study.runs())))
    assert list(figures) == ["response"]
    rows = rows_of(figures["response"])
    assert [(row["metric"], row["rate"], row["arm"]) for row in rows] == [
        ("margin", "1.0", "rate 1"), ("margin", "2.0", "rate 2"), ("margin", "4.0", "rate 4"),
    ]  # fmt: skip
    means = [1 * 4 + 0.02 / 3, 2 * 4 + 0.02 / 3, 4 * 4 + 0.02 / 3]
    assert [float(row["mean"]) for row in rows] == means
    assert ElementTree.fromstring(figures["response"].svg).tag.endswith("svg")
    assert "along rate" in figures["response"].title


def test_two_numbers_are_a_map_with_a_hole_where_an_arm_is_missing(decay: None) -> None:
    study = decay_study(rates=(1.0, 2.0, 3.0))
    arms = {
        f"{arm} long={epochs}": replace(config, epochs=epochs)
        for arm, config in study.arms.items()
        for epochs in (2, 3, 4)
    }
    study = replace(study, arms=arms, baseline=next(iter(arms)))
    gone = next(reversed(arms))
    results = tuple(decayed(run) for run in study.runs() if run.arm != gone)
    figures = draw(study, results)
    assert list(figures) == ["response", "phase_map"]
    rows = rows_of(figures["phase_map"])
    assert len(rows) == 8
    assert "hatched: not measured" in figures["phase_map"].caption


def test_arms_that_differ_in_no_number_have_no_response(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    assert draw(study, results) == {}
    assert draw(make_study(), ()) == {}
