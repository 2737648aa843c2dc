import pytest

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from sweeps.running.console import Board
from sweeps.running.pace import Pace
from sweeps.searching.sources import Outlook
from sweeps.study.study import Study


def test_the_time_estimate_places_runs_on_slots_one_after_another() -> None:
    pace = Pace()
    assert pace.seconds_left([100.0], 0, 0.0, 2) is None
    pace.train("a", 50.0, 5.0)
    assert pace.seconds_left([100.0], 0, 0.0, 8) == 10.0
    assert pace.seconds_left([100.0, 40.0], 1, 100.0, 2) == 14.0
    assert pace.seconds_left([], 9, 900.0, 8) == 20.0  # two waves, not 9 / 8
    assert pace.seconds_left([], 3, 300.0, 8) == 10.0
    assert pace.seconds_left([], 100, 10_000.0, 2) == 500.0


@pytest.mark.parametrize(
    ("outlook", "seconds"),
    [
        (Outlook(), 18.0),
        (Outlook(num_runs=6, at_once=2), 78.0),
        (Outlook(num_runs=6, at_once=2, hours=1.0), 78.0),  # all of it fits
        (Outlook(num_runs=6, at_once=2, hours=45 / 3600), 65.0),  # one more pair begins before
        (Outlook(num_runs=6, at_once=2, hours=15 / 3600), 18.0),  # spent before a slot is free
        (Outlook(num_runs=6, at_once=2, hours=15 / 3600, num_last=4), 58.0),
        (Outlook(num_runs=6, at_once=2, num_last=4), 118.0),
    ],
)
def test_the_time_estimate_counts_runs_that_the_budget_may_add(
    outlook: Outlook, seconds: float
) -> None:
    base = TrainConfig(epochs=10, batch_size=8)
    arms = {"erm": base, "midpoint": with_values(base, {"mix.law": "midpoint"})}
    study = Study(name="s", description="", arms=arms, seeds=(0, 1, 2, 3), baseline="erm",
                  source="")  # fmt: skip
    board = Board(study=study, slots=2, clock=lambda: 0.0, outlook=outlook)
    for run in study.runs()[:2]:
        board.expect(run, epochs=10, work_per_epoch=1)
        board.start(run)
        board.advance(run, 1, trained=True, seconds=[2.0])
    assert board.seconds_left() == pytest.approx(seconds)


def test_the_time_estimate_weights_runs_by_their_work() -> None:
    base = TrainConfig(epochs=10, batch_size=8)
    arms = {"short": base, "long": with_values(base, {"epochs": 90})}
    study = Study(name="s", description="", arms=arms, seeds=(0,), baseline="short", source="")
    board = Board(study=study, slots=2)
    short, long = study.runs()
    for run in (short, long):
        board.expect(run, epochs=run.config.epochs, work_per_epoch=7)
        board.start(run)
    board.advance(short, 5, trained=True, seconds=[1.0] * 5)
    assert board.seconds_left() == pytest.approx(90.0)
