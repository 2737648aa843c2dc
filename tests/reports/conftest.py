import pytest
from synthetic import finish, make_study

from sweeps.results import RunResult
from sweeps.study import Study


@pytest.fixture
def study() -> Study:
    return make_study()


@pytest.fixture
def results(study: Study) -> tuple[RunResult, ...]:
    return tuple(finish(run) for run in study.runs())
