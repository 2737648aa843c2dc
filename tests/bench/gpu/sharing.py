"""Sharing: speed of several processes that train on one GPU, with and without NVIDIA's MPS."""

import os
import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from unittest.mock import patch

import torch

from tests.bench.gpu.rungs import Rung, build
from tests.bench.gpu.timing import wait
from tests.bench.gpu.workload import Size

_NETWORKS = ("large", "small")
_READY: list[Barrier] = []
"""In a process that trains: what it waits for, until all processes are ready to train."""


def side_by_side(size: Size, device: torch.device) -> dict[str, float | str]:
    """Return the total images per second of 1, 2, ... processes that train on one device.

    The names of the values are `large network, 2` for two processes without MPS, NVIDIA's service
    for sharing a GPU, and `large network, 2, MPS` with it. Speeds with MPS are also given as
    multiples of the speed of one process without MPS.

    Timing begins when all processes are ready, and their steps are counted over the same seconds.
    """
    found: dict[str, float | str] = {}
    alone: dict[str, float] = {}
    for count in size.processes:
        for network, rate in together(count, size, device, {}).items():
            found[f"{network} network, {count}"] = rate
            alone.setdefault(network, rate)
    try:
        with mps(device) as variables:
            for count in size.processes:
                for network, rate in together(count, size, device, variables).items():
                    name = f"{network} network, {count}, MPS"
                    found |= {name: rate, f"{name} / {size.processes[0]}": rate / alone[network]}
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        found["MPS: absent"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return found


def together(
    count: int, size: Size, device: torch.device, variables: Mapping[str, str]
) -> dict[str, float]:
    """Return the total images per second of several processes that train at once.

    All train a large network, and then a small one; the keys of the result are `large` and `small`.

    Args:
        count: Number of processes.
        size: Size of the benchmark.
        device: Device on which all train.
        variables: Environment variables to add for the processes, such as those of MPS.
    """
    context = get_context("spawn")
    with (
        patch.dict(os.environ, variables),
        ProcessPoolExecutor(count, context, _wait_for, (context.Barrier(count),)) as pool,
    ):
        return {
            network: sum(pool.map(partial(_rate, network), [size] * count, [device] * count))
            for network in _NETWORKS
        }


def _wait_for(ready: Barrier) -> None:
    _READY.append(ready)


def _rate(network: str, size: Size, device: torch.device) -> float:
    """Train in one of the processes, and return its images per second."""
    (ready,) = _READY
    try:
        step = build(Rung(is_small=network == "small"), size, device)
        for _ in range(3):
            step()
        wait(device)
    except Exception:
        traceback.print_exc()
        ready.abort()  # the others must not wait for this process
        raise
    ready.wait()
    steps, begin = 0, time.perf_counter()
    while (now := time.perf_counter()) < begin + size.window:
        for _ in range(size.steps):
            step()
        wait(device)
        steps += size.steps
    return steps * size.batch / (now - begin)


@contextmanager
def mps(device: torch.device) -> Iterator[dict[str, str]]:
    """Run NVIDIA's MPS daemon during a block; yield the environment variables for its clients.

    Raises:
        RuntimeError: If there is no GPU.
    """
    if device.type != "cuda":
        raise RuntimeError("NVIDIA's Multi-Process Service (MPS) needs a GPU, got (device=cpu).")
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        names = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")
        variables = dict.fromkeys(names, folder)
        control, own = ["nvidia-cuda-mps-control"], {**os.environ, **variables}
        subprocess.run([*control, "-d"], env=own, check=True, capture_output=True)
        try:
            yield variables
        finally:
            subprocess.run(control, input="quit\n", env=own, check=False, text=True)
