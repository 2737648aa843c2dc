import heapq
import random
from dataclasses import dataclass, field

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from sweeps.running.console import Board
from sweeps.running.pace import Pace
from sweeps.searching.sources import Outlook
from sweeps.study.study import Run, Study


def test_the_time_estimate_places_runs_on_slots_one_after_another() -> None:
    pace = Pace()
    assert pace.seconds_left([100.0], 0, 0.0, 2) is None
    pace.train("a", 50.0, 5.0)
    assert pace.seconds_left([100.0], 0, 0.0, 8) == 10.0
    assert pace.seconds_left([100.0, 40.0], 1, 100.0, 2) == 14.0
    assert pace.seconds_left([], 9, 900.0, 8) == 20.0  # two waves, not 9 / 8
    assert pace.seconds_left([], 3, 300.0, 8) == 10.0
    assert pace.seconds_left([], 100, 10_000.0, 2) == 500.0


def test_time_outside_training_counts_for_future_runs() -> None:
    pace = Pace()
    pace.begin("a", 10.0)
    pace.train("a", 50.0, 5.0)
    assert pace.seconds_left([], 4, 200.0, 1) == 20.0
    pace.end(
        "a", 118.0
    )  # its process had to start, which the next run in the slot does not wait for
    assert pace.seconds_left([], 4, 200.0, 1) == 20.0
    pace.begin("b", 118.0)
    pace.train("b", 50.0, 5.0)
    pace.end("b", 126.0)
    assert pace.seconds_left([], 4, 200.0, 1) == 32.0


@dataclass(kw_only=True)
class Launch:
    """A simulated launch: processes start, and train one run after another."""

    slots: int
    num_runs: int
    epochs: int
    epoch_seconds: float
    start_up: float
    """Seconds from the start of a slot to the first epoch in it; each slot takes a little longer.
    """
    beside: float
    """Seconds of each run that are not spent on epochs."""
    store_every: float = 1.0
    """Seconds between two reports; the first comes with the first epoch."""
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def first_eta(self) -> tuple[float, float]:
        """Return the first estimate of the remaining seconds, and the true value at that time."""
        base = TrainConfig(epochs=self.epochs, batch_size=8)
        study = Study(name="s", description="", arms={"erm": base},
                      seeds=tuple(range(self.num_runs)), baseline="erm", source="")  # fmt: skip
        now = [0.0]
        board = Board(study=study, slots=self.slots, clock=lambda: now[0])
        for run in study.runs():
            board.expect(run, epochs=self.epochs, work_per_epoch=100)
        free = [(0.0, slot) for slot in range(min(self.slots, self.num_runs))]
        events: list[tuple[float, int, str, Run, list[float]]] = []
        ends = []
        for number, run in enumerate(study.runs()):
            at, slot = heapq.heappop(free)
            events.append((at, number, "start", run, []))
            at += self.beside + (self.start_up * (1 + 0.2 * slot) if number < self.slots else 0.0)
            waiting: list[float] = []
            reported = -1.0
            for epoch in range(self.epochs):
                seconds = self.epoch_seconds * self.rng.uniform(0.8, 1.25)
                at += seconds
                waiting.append(seconds)
                if at - reported >= self.store_every or epoch + 1 == self.epochs:
                    events.append((at, number, str(epoch + 1), run, waiting))
                    waiting, reported = [], at
            events.append((at, number, "end", run, []))
            ends.append(at)
            heapq.heappush(free, (at, slot))
        for at, _, what, run, seconds in sorted(events, key=lambda event: event[:2]):
            now[0] = at
            if what == "start":
                board.start(run)
            elif what == "end":
                board.end(run, failed=False)
            else:
                board.advance(run, int(what), trained=True, seconds=seconds)
            if (left := board.seconds_left()) is not None:
                return left, max(ends) - at
        raise AssertionError("nothing was ever known")


@pytest.mark.parametrize("slots", [1, 2, 8])
@pytest.mark.parametrize("num_runs", [3, 15, 45])
@pytest.mark.parametrize(
    ("epochs", "epoch_seconds", "start_up", "beside"),
    [(20, 0.3, 10.0, 0.1), (100, 30.0, 60.0, 5.0), (5, 2.0, 4.0, 0.1), (300, 0.1, 12.0, 0.2)],
)
def test_the_first_eta_is_right_within_a_factor_of_two(
    slots: int, num_runs: int, epochs: int, epoch_seconds: float, start_up: float, beside: float
) -> None:
    launch = Launch(
        slots=slots, num_runs=num_runs, epochs=epochs, epoch_seconds=epoch_seconds,
        start_up=start_up, beside=beside,
    )  # fmt: skip
    said, was = launch.first_eta()
    assert was / 2 <= said <= was * 2, (said, was)


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
