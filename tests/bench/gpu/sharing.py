"""Sharing: speed of several processes that train on one GPU, with and without NVIDIA's MPS."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from tests.bench.gpu.rungs import Rung, build
from tests.bench.gpu.timing import wait
from tests.bench.gpu.workload import Size, size_and_device

_MODULE = "tests.bench.gpu.sharing"
_COMMON_CLOCK = time.CLOCK_MONOTONIC
_NETWORKS = ("large", "small")


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
        for network, rate in together(count, size.window, {}).items():
            found[f"{network} network, {count}"] = rate
            alone.setdefault(network, rate)
    try:
        with mps(device) as variables:
            for count in size.processes:
                for network, rate in together(count, size.window, variables).items():
                    name = f"{network} network, {count}, MPS"
                    found |= {name: rate, f"{name} / {size.processes[0]}": rate / alone[network]}
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        found["MPS: absent"] = in_one_line(error)
    return found


def in_one_line(error: Exception) -> str:
    """Return the kind of an error and the begin of its message."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def together(count: int, window: float, variables: Mapping[str, str]) -> dict[str, float]:
    """Return the total images per second of several processes that train at once.

    All train a large network, and then a small one; the keys of the result are `large` and `small`.

    Args:
        count: Number of processes.
        window: Seconds during which steps are counted.
        variables: Environment variables to add for the processes, such as those of MPS.

    Raises:
        RuntimeError: If a process ends without reporting its images per second.
    """
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(window)], text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **variables},
        )
        for _ in range(count)
    ]  # fmt: skip
    try:
        return {network: _rate(workers) for network in _NETWORKS}
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def _rate(workers: "list[subprocess.Popen[str]]") -> float:
    """Wait until all processes are ready, start their timing, and return their total speed.

    Returns:
        The sum of their images per second.

    Raises:
        RuntimeError: If a process ends without reporting its images per second.
    """

    def answers() -> list[str]:
        lines = [worker.stdout.readline() for worker in workers]
        if not all(lines):
            raise RuntimeError(f"one of {len(workers)} processes ended; stderr has its error.")
        return lines

    answers()  # that they are ready
    begin = time.clock_gettime(_COMMON_CLOCK) + 0.2
    for worker in workers:
        worker.stdin.write(f"{begin}\n")
    return sum(map(float, answers()))


def main(arguments: list[str]) -> None:
    """Time the training of each network in a worker process; `together` starts several of them.

    For each network the worker prints `ready`, reads the start time from stdin, trains, and prints
    its images per second. The first argument is the number of seconds to train.
    """
    size, device = size_and_device()
    window = float(arguments[0])
    for network in _NETWORKS:
        step = build(Rung(is_small=network == "small"), size, device)
        for _ in range(3):
            step()
        wait(device)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        begin = float(sys.stdin.readline())
        while time.clock_gettime(_COMMON_CLOCK) < begin:
            time.sleep(0.001)
        steps, now = 0, begin
        while now < begin + window:
            for _ in range(size.steps):
                step()
            wait(device)
            steps, now = steps + size.steps, time.clock_gettime(_COMMON_CLOCK)
        sys.stdout.write(f"{steps * size.batch / (now - begin)}\n")
        sys.stdout.flush()


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


if __name__ == "__main__":
    main(sys.argv[1:])
