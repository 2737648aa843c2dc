"""Pairs: ways of doing the same work, timed in turn; options that all benches share."""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median


def arguments_of(description: str | None) -> argparse.ArgumentParser:
    """Return the command line parser of a bench, with the options that all benches share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, help="folder; default: one in reports/published")
    return parser


def interleaved(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Return the CPU seconds of each way in each round.

    A first round, which allocates memory and chooses kernels, is left out. Every second round takes
    the ways in reverse order.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in list(ways.items())[:: -1 if number % 2 else 1]:
            started = time.process_time()
            way()
            if number:
                seconds[name].append(time.process_time() - started)
    return seconds


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return number, median, smallest and largest of some values."""
    return {"n": len(values), "median": median(values), "min": min(values), "max": max(values)}
