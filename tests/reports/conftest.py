import pytest
from synthetic import finish, make_study
from synthetic_search import HISTORY, result_of, search_study

from mixup_core import problem
from sweeps.results import RunResult
from sweeps.study import Study


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
def decay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(problem.PROBLEMS, "decay", "decay:DECAY")
    monkeypatch.setitem(problem.PROBLEMS, "ramp", "decay:RAMP")
