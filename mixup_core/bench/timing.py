"""Timing: seconds of steps on a device, which is waited for at both ends only."""

import time
from collections.abc import Callable

import torch


def timed(
    step: Callable[[], object], times: int, device: torch.device, *, warm_up: int = 1
) -> float:
    """Return the seconds of a step, the mean of some; the device is waited for at both ends."""
    for _ in range(warm_up):
        step()
    wait(device)
    started = time.perf_counter()
    for _ in range(times):
        step()
    wait(device)
    return (time.perf_counter() - started) / times


def wait(device: torch.device) -> None:
    """Wait until a device has done all it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
