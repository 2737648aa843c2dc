"""Pairs: two ways of doing the same work, timed in turn, and the ratio of their times."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


def arguments_of(description: str | None) -> argparse.ArgumentParser:
    """Return the command line parser of a bench, with the options that all benches share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, help="folder; default: one in reports/published")
    return parser


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """The time of one way divided by that of another, for each round."""

    what: str
    """Text that names the work, and which way is divided by which."""
    rounds: tuple[float, ...]
    goal: float | None = None
    """Smallest median that is required; None if none is."""
    least: float | None = None
    """Smallest value that is required of every round; None if none is."""

    def plain(self) -> Mapping[str, float | int | str | None]:
        """Return the ratio as plain values that can be written to a file."""
        return {**spread(self.rounds), "goal": self.goal, "goal of every round": self.least}


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


def ratios(over: Sequence[float], under: Sequence[float]) -> tuple[float, ...]:
    """Return the ratio of the two ways in each round."""
    return tuple(one / other for one, other in zip(over, under, strict=True))


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return number, median, smallest and largest of some values."""
    return {"n": len(values), "median": median(values), "min": min(values), "max": max(values)}


def say(found: Sequence[Ratio]) -> None:
    """Print one line per ratio."""
    for ratio in found:
        s = spread(ratio.rounds)
        goal = "" if ratio.goal is None else f"  goal {ratio.goal:g}"
        sys.stdout.write(
            f"{ratio.what:64} {s['median']:8.3g} [{s['min']:.3g}..{s['max']:.3g}] "
            f"n={len(ratio.rounds)}{goal}\n"
        )
        sys.stdout.flush()
