from collections.abc import Iterator

import pytest

from mixup_core.problem import PROBLEMS
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.decay import DECAY
from tests.reports.synthetic import finish, make_study
from tests.reports.synthetic_search import HISTORY, result_of, search_study


@pytest.fixture
def study() -> Study:
    return make_study()


@pytest.fixture
def results(study: Study) -> tuple[RunResult, ...]:
    return tuple(finish(run) for run in study.runs())


@pytest.fixture
def grown() -> Study:
    return search_study().grown(HISTORY.points, HISTORY.points[1])


@pytest.fixture
def grown_results(grown: Study) -> tuple[RunResult, ...]:
    return tuple(result_of(run) for run in grown.runs())


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures out of reports, because drawing takes most of their time."""
    monkeypatch.setattr("reports.pages.build._drawn", lambda *_: ())
    monkeypatch.setattr("reports.pages.build.draw_search", lambda *_: ())


@pytest.fixture
def decay() -> Iterator[None]:
    """Register the problem `decay` during a test."""
    PROBLEMS.add(DECAY)
    yield
    PROBLEMS.remove(DECAY.name)
