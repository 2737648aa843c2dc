"""Pairs: two ways of doing the same work, measured in turn, and what is said of their ratio."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


def arguments_of(description: str | None) -> argparse.ArgumentParser:
    """Return a bench's parser; where its figures go is the same for all."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, help="folder; default: one in reports/published")
    return parser


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """What one way costs as a multiple of the other, round by round."""

    what: str
    """The work, and which way is divided by which."""
    rounds: tuple[float, ...]
    goal: float | None = None
    """The least median asked for, if one is."""
    least: float | None = None
    """What every round is to reach, if that is asked for."""

    def plain(self) -> Mapping[str, float | int | str | None]:
        """Return the ratio for a file."""
        return {**spread(self.rounds), "goal": self.goal, "goal of every round": self.least}


def interleaved(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of CPU of this process that each way took in each round.

    A first round, in which memory is taken and kernels are chosen, is dropped. Every second round
    goes through the ways backwards.
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
    """Return the ratio of each round."""
    return tuple(one / other for one, other in zip(over, under, strict=True))


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the number of some values, their median, the least and the greatest."""
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
