"""Progress: what a terminal and a log show of a launch, and when its end is expected."""

import io
import time
from collections.abc import Callable
from typing import Any

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from sweeps.machine.terminal_text import still
from sweeps.running.monitor import Console
from sweeps.running.progress import Board, Pace
from sweeps.searching.sources import Outlook
from sweeps.study.study import Study

BASE = TrainConfig(epochs=10, batch_size=8)


def _study(seeds: tuple[int, ...] = (0, 1), **other: Any) -> Study:
    arms = {"erm": BASE, "midpoint": with_values(BASE, other or {"mix.law": "midpoint"})}
    return Study(name="pair", description="", arms=arms, seeds=seeds, baseline="erm", source="")


def _board(clock: Callable[[], float] = lambda: 0.0) -> Board:
    study = _study()
    board = Board(study=study, clock=clock)
    for run in study.runs():
        board.expect(run, epochs=10, work_per_epoch=100)
    return board


def test_the_headline_shows_run_counts_and_images_per_second() -> None:
    now = [0.0]
    board = _board(lambda: now[0])
    first, second, *_ = board.study.runs()
    board.start(first)
    now[0] = 10.0
    board.advance(first, 5, trained=True, seconds=[2.0] * 5)
    assert board.work_per_second() == pytest.approx(50)
    assert board.seconds_left() == pytest.approx((5 + 30) * 100 / 50)
    assert board.headline() == "pair  0/4 runs  1 running  0 failed  50 images/s  ETA 70 s"
    board.end(first, failed=False)
    board.start(second)
    board.end(second, failed=True)
    assert board.headline().startswith("pair  1/4 runs  0 running  1 failed")


def test_the_table_shows_each_arm_with_its_running_seeds() -> None:
    board = _board()
    erm, midpoint, erm_next, _ = board.study.runs()
    board.start(midpoint)
    board.advance(midpoint, 3, trained=True)
    board.start(erm_next)
    board.end(erm, failed=False)
    assert board.table() == [
        "arm       done   running",
        "erm       1/2    seed 1 0/10",
        "midpoint  0/2    seed 0 3/10",
    ]


def test_a_log_gets_changes_of_state_and_no_control_characters() -> None:
    stream = io.StringIO()
    console = Console(_board(), stream)
    console.change("erm seed 0 starts")
    console.refresh()
    console.note("erm seed 0 failed: disk full")
    assert stream.getvalue().splitlines() == [
        "erm seed 0 starts  [pair  0/4 runs  0 running  0 failed]",
        "erm seed 0 failed: disk full",
    ]


def test_a_terminal_gets_one_table_redrawn_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    console = Console(_board(), stream)
    console.change("not shown: the table shows it")
    console.refresh()
    console.close()
    drawn = stream.getvalue()
    assert "not shown" not in drawn
    assert drawn.count("\x1b[4F\x1b[J") == 1
    assert drawn.count("pair  0/4 runs") == 2


def test_a_slow_step_is_reported_repeatedly_while_running() -> None:
    stream = io.StringIO()
    with still("starting Ray", stream, after=0.0, every=0.01):
        while stream.getvalue().count("\n") < 3:
            time.sleep(0.01)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "starting Ray"
    assert lines[2] == "starting Ray, 0 s"


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
    study = _study(seeds=(0, 1, 2, 3))
    board = Board(study=study, slots=2, clock=lambda: 0.0, outlook=outlook)
    for run in study.runs()[:2]:
        board.expect(run, epochs=10, work_per_epoch=1)
        board.start(run)
        board.advance(run, 1, trained=True, seconds=[2.0])
    assert board.seconds_left() == pytest.approx(seconds)


def test_the_time_estimate_weights_runs_by_their_work() -> None:
    study = _study(seeds=(0,), epochs=90)
    board = Board(study=study, slots=2)
    short, long = study.runs()
    for run in (short, long):
        board.expect(run, epochs=run.config.epochs, work_per_epoch=7)
        board.start(run)
    board.advance(short, 5, trained=True, seconds=[1.0] * 5)
    assert board.seconds_left() == pytest.approx(90.0)


@pytest.mark.parametrize(("given", "kept"), [(-1.0, 0.0), (0.25, 0.25), (7.0, 1.0)])
def test_the_finished_fraction_of_an_epoch_stays_within_its_ends(given: float, kept: float) -> None:
    board = _board()
    run, *_ = board.study.runs()
    board.start(run)
    board.advance(run, 1, trained=True, seconds=[2.0], within=given)
    assert board.within[run.key] == kept
