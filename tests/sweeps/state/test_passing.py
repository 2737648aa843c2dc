"""Passing stages: a longer run does not delete a stage that is the result of a shorter run."""

from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from sweeps.running.assignment import Assignment
from sweeps.running.storing import Storing
from sweeps.state.passing import let_results_stay
from sweeps.state.results import read_results
from sweeps.state.stages import PlannedRun
from sweeps.study.study import Run
from tests import toy

SHORT = Run(arm="short", config=toy.ToyConfig(epochs=3))
LONG = Run(arm="long", config=toy.ToyConfig(epochs=9))

pytestmark = pytest.mark.usefixtures("toy_problem")


def _trained(run: Run, store: Store) -> Storing:
    planned = PlannedRun(run=run, start=0, needs=(), keep=frozenset())
    return Storing(Assignment.of(planned, store, keep_final_state=False, on_gpu=False), "cpu")


@pytest.mark.parametrize("by", ["the launch", "its own process", "nobody"])
def test_the_result_of_a_short_run_is_kept_when_a_longer_run_continues(
    tmp_path: Path, by: str
) -> None:
    store = Store(str(tmp_path))
    longer = _trained(LONG, store)
    walk = longer.resume(lambda: toy.start(LONG.config, None, "cpu"))
    for _ in iter(walk):
        longer.add(walk, 30.0)
        if len(walk.records) == 4 and by == "the launch":
            assert let_results_stay([SHORT], store)
            assert not let_results_stay([SHORT], store)
        elif len(walk.records) == 4 and by == "its own process":
            _trained(SHORT, store).resume(lambda: toy.start(SHORT.config, None, "cpu"))
    (result,) = read_results([SHORT], store)
    assert result.outcome == ("missing" if by == "nobody" else "complete")
