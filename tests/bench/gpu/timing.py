"""Timing: mean seconds per step; the device is synchronised only before and after all steps."""

import time
from collections.abc import Callable

import torch


def timed(
    step: Callable[[], object], times: int, device: torch.device, *, warm_up: int = 1
) -> float:
    """Return the mean seconds per step, over several steps without synchronisation in between.

    Args:
        step: Function that performs one step.
        times: Number of steps timed.
        device: Device on which the steps run.
        warm_up: Number of steps before timing begins.
    """
    for _ in range(warm_up):
        step()
    wait(device)
    started = time.perf_counter()
    for _ in range(times):
        step()
    wait(device)
    return (time.perf_counter() - started) / times


def wait(device: torch.device) -> None:
    """Wait until a device has finished all queued work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
