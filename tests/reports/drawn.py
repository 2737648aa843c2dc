"""Figures of synthetic results by name, and their content."""

from reports.figures.canvas import Figure, arm_styles
from reports.figures.final import draw_finals
from reports.figures.learning_curves import draw_curves
from reports.numbers.runs import arrange
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic import rows_of


def draw(study: Study, results: tuple[RunResult, ...]) -> dict[str, Figure]:
    """Return the figures that every study has, without those that lack results."""
    arranged, table = arrange(study, results), tabulate(study, results)
    styles = arm_styles(study.arms)
    figures = (
        draw_curves(study, arranged, table, styles),
        draw_finals(arranged, table, styles),
    )
    return {figure.name: figure for figure in figures if figure is not None}


def numbers_of(figure: Figure) -> list[dict[str, str]]:
    return rows_of(figure.numbers)
