"""What a launch takes beside bare loops over the same runs.

    python -m tests.bench.launch [--pairs N] [--study STUDY] [--set PATH=VALUE ...]

Seconds of the clock, both in turn, two processes each: `mixsweep run` with its store, MLflow and
report, and loops that train and keep nothing. Only on a machine that does nothing else.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mixup_core.images.data.fetching import data_root
from tests.bench.pairs import ratios, spread
from tests.conftest import CommandLine
from tests.soak.findings import publish

SLOTS = 2
FACTOR, SECONDS = 1.03, 8.0
"""The goal: bare loops times the factor, and so many seconds."""


def main() -> None:
    """Measure both in turn and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--study", default="quickstart")
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    options = parser.parse_args()
    mine, theirs = [], []
    for number in range(options.pairs):
        ways = [(mine, ours), (theirs, bare)]
        for seconds, way in ways[:: -1 if number % 2 else 1]:
            seconds.append(way(options.study, options.overrides))
    beyond = [own - FACTOR * other for own, other in zip(mine, theirs, strict=True)]
    figures = {
        "pairs": options.pairs,
        "slots": SLOTS,
        "load_average_at_the_end": os.getloadavg()[0],
        "mixsweep, wall seconds": spread(mine),
        "bare loops, wall seconds": spread(theirs),
        "mixsweep / bare loops": spread(ratios(mine, theirs)),
        f"beyond {FACTOR} bare loops, wall seconds": {**spread(beyond), "goal at most": SECONDS},
    }
    title = f"{options.study}, mixsweep and bare loops in turn"
    publish("launch", title, figures, kind="bench")


def ours(study: str, overrides: list[str]) -> float:
    """Return the seconds of a launch in an empty home."""
    with tempfile.TemporaryDirectory(prefix="launch-") as folder:
        mixsweep = CommandLine(home=Path(folder) / "home", data=data_root(), extra={})
        sets = [part for override in overrides for part in ("--set", override)]
        command = ["run", study, *sets, "--slots", str(SLOTS)]
        started = time.monotonic()
        process = mixsweep.start(*command)
        said = process.communicate()
        assert process.returncode == 0, said
        return time.monotonic() - started


def bare(study: str, overrides: list[str]) -> float:
    """Return the seconds of the loops."""
    given = CommandLine(home=Path(), data=data_root(), extra={})
    started = time.monotonic()
    loops = [
        subprocess.Popen(
            [
                sys.executable, "-m", "tests.bench.bare",
                str(part), str(SLOTS), study, *overrides,
            ],
            env=given.environment(),
        )
        for part in range(SLOTS)
    ]  # fmt: skip
    assert [loop.wait() for loop in loops] == [0] * SLOTS
    return time.monotonic() - started


if __name__ == "__main__":
    main()
