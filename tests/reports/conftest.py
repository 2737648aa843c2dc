from collections.abc import Iterator

import pytest

from mixup_core.problem import PROBLEMS
from tests.reports.decay import DECAY


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures out of reports, because drawing takes most of their time."""
    monkeypatch.setattr("reports.pages.build._drawn", lambda *_: ())


@pytest.fixture
def decay() -> Iterator[None]:
    """Register the problem `decay` during a test."""
    PROBLEMS.add(DECAY)
    yield
    PROBLEMS.remove(DECAY.name)
