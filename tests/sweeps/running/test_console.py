import io
import time

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from sweeps.running.console import Board, Console, still
from sweeps.study.study import Study


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def _board(clock: _Clock | None = None) -> Board:
    base = TrainConfig(epochs=10, batch_size=8)
    arms = {"erm": base, "midpoint": with_values(base, {"mix.law": "midpoint"})}
    study = Study(name="pair", description="", arms=arms, seeds=(0, 1), baseline="erm", source="")
    keys = [run.key for run in study.runs()]
    return Board(
        study=study,
        work_per_epoch=dict.fromkeys(keys, 100),
        epochs_to_train=dict.fromkeys(keys, 10),
        clock=clock or _Clock(),
    )


def test_the_headline_shows_run_counts_and_images_per_second() -> None:
    clock = _Clock()
    board = _board(clock)
    first, second, *_ = board.study.runs()
    board.start(first)
    clock.now = 10.0
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


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_one_table_redrawn_in_place() -> None:
    stream = _Terminal()
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
