from pathlib import Path

import pytest
from click.testing import CliRunner

from mixup_core.store.checkpoints import Store
from sweeps.cli import commands
from sweeps.commands.run import with_room
from sweeps.reading.study_file import load_study
from sweeps.results import RunResult
from sweeps.running.placement import Placement
from sweeps.searching.sources import FixedSource, RunSource
from sweeps.stages import plan_study

STUDY = load_study("digits")


@pytest.mark.parametrize(
    ("placement", "needs", "shares"),
    [
        (Placement().auto(), 0.5, [0.125, 0.25, 0.5]),
        (Placement().auto(), 0.1, [0.125]),
        (Placement().auto(), 2.0, [0.125, 0.25, 0.5, 1.0]),
        (Placement(gpus_per_run=0.25), 0.5, [0.25]),
    ],
)
def test_runs_that_lack_memory_go_on_with_twice_as_much_of_a_gpu(
    tmp_path: Path, placement: Placement, needs: float, shares: list[float]
) -> None:
    store, tried = Store(str(tmp_path)), []

    def again() -> FixedSource:
        return FixedSource(STUDY, plan_study(STUDY, store))

    def attempt(source: RunSource, placement: Placement) -> tuple[RunResult, ...]:
        assert placement.gpus_per_run is not None
        tried.append(placement.gpus_per_run)
        source.gpus_per_run = placement.gpus_per_run
        source.lacked_memory = placement.gpus_per_run < needs
        return ()

    source, _ = with_room(attempt, again(), again, placement)
    assert tried == shares
    assert source.lacked_memory is (shares[-1] < needs)


def test_a_share_of_a_gpu_is_a_number_or_auto() -> None:
    for wrong in ("some", "-1", ""):
        done = CliRunner().invoke(commands, ["run", "digits", "--gpus-per-run", wrong])
        assert done.exit_code == 2
        assert "--gpus-per-run" in done.output
