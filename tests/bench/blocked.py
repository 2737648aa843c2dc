"""Simulation of GPUs that wait because the driver handles the ends of runs one at a time.

    python -m tests.bench.blocked [--ends-per-second N] [--runs RUNS]

Each GPU trains a run, waits until the driver has handled its end and assigned the next run, and so
on. Durations of runs vary by 5 %, from a fixed seed. Nothing is trained.
"""

import argparse
import heapq
import random
import sys

GPUS = (8, 64, 256, 1_000)
LENGTHS = (5.0, 95.0, 600.0)
"""Durations of a run, in seconds."""


def busy_share(gpus: int, length: float, *, ends_per_second: float, runs: int) -> float:
    """Return the fraction of GPU time spent on training, without the first run of each GPU.

    Args:
        gpus: Number of GPUs, each with one run at a time.
        length: Mean seconds of training of a run.
        ends_per_second: Number of ended runs that the driver can handle in a second.
        runs: Number of runs that each GPU trains.
    """
    rng = random.Random(0)
    ends = [(rng.uniform(0, length), gpu) for gpu in range(gpus)]
    heapq.heapify(ends)
    free_at = trained = waited = 0.0
    for number in range(gpus * runs):
        ended_at, gpu = heapq.heappop(ends)
        free_at = max(free_at, ended_at) + 1 / ends_per_second
        seconds = length * rng.uniform(0.95, 1.05)
        heapq.heappush(ends, (free_at + seconds, gpu))
        if number >= gpus:
            trained += seconds
            waited += free_at - ended_at
    return trained / (trained + waited)


def main(arguments: list[str] | None = None) -> None:
    """Print the fraction of GPU time lost by waiting, as a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ends-per-second", type=float, default=37.0)
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args(arguments)
    lines = ["| seconds of a run | " + " | ".join(f"{gpus:,} GPUs" for gpus in GPUS) + " |"]
    lines.append("|---" * (1 + len(GPUS)) + "|")
    for length in LENGTHS:
        blocked = [
            1 - busy_share(
                gpus, length, ends_per_second=options.ends_per_second, runs=options.runs
            )
            for gpus in GPUS
        ]  # fmt: skip
        lines.append(f"| {length:g} | " + " | ".join(f"{100 * b:.2f} %" for b in blocked) + " |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
