"""Timing: the mean time of steps, without warm-up steps."""

import time

import pytest
import torch

from tests.bench.gpu.timing import timed, wait

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("seconds", "times", "options", "mean"),
    [
        ([50.0, 2.0, 4.0, 9.0], 3, {}, 5.0),
        ([50.0, 60.0, 70.0, 1.0, 2.0], 2, {"warm_up": 3}, 1.5),
        ([8.0], 1, {"warm_up": 0}, 8.0),
    ],
)
def test_timed_returns_the_mean_of_the_steps_after_the_warm_up(
    monkeypatch: pytest.MonkeyPatch,
    seconds: list[float],
    times: int,
    options: dict[str, int],
    mean: float,
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    waiting = iter(seconds)

    def step() -> None:
        now[0] += next(waiting)

    assert timed(step, times, CPU, **options) == mean
    with pytest.raises(StopIteration):
        step()


def test_wait_does_not_synchronize_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cuda, "synchronize")
    wait(CPU)
