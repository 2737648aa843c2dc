"""Wall time of a launch, compared with bare training loops over the same runs.

    python -m tests.bench.launch [--pairs N] [--study STUDY] [--set PATH=VALUE ...]

Two ways are timed in turn, with two processes each: `mixsweep run`, which stores results, writes
MLflow and a report, and bare loops that train and store nothing. The machine must be otherwise
idle.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mixup_core.images.data.fetching import data_root
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.state.results import read_results
from tests.bench.pairs import arguments_of, ratios, spread
from tests.conftest import CommandLine
from tests.soak.findings import publish

SLOTS = 2
FACTOR, SECONDS = 1.03, 8.0
"""The goal: bare loops times the factor, and so many seconds."""
AFTER = 1.5
"""Required upper limit of the seconds for report and tracking after the last epoch."""


def main() -> None:
    """Time both ways in turn and publish the results."""
    parser = arguments_of(__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--study", default="quickstart")
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    options = parser.parse_args()
    launches, theirs = [], []
    for number in range(options.pairs):
        ways = [
            lambda: launches.append(ours(options.study, options.overrides)),
            lambda: theirs.append(bare(options.study, options.overrides)),
        ]
        for way in ways[:: -1 if number % 2 else 1]:
            way()
    mine = [launch.wall for launch in launches]
    beyond = [own - FACTOR * other for own, other in zip(mine, theirs, strict=True)]
    figures = {
        "pairs": options.pairs,
        "slots": SLOTS,
        "load_average_at_the_end": os.getloadavg()[0],
        "mixsweep, wall seconds": spread(mine),
        "of them to the first epoch": spread([launch.before for launch in launches]),
        "of them after the last epoch": {
            **spread([launch.after for launch in launches]),
            "goal at most": AFTER,
        },
        "bare loops, wall seconds": spread(theirs),
        "mixsweep / bare loops": spread(ratios(mine, theirs)),
        f"beyond {FACTOR} bare loops, wall seconds": {**spread(beyond), "goal at most": SECONDS},
    }
    title = f"{options.study}, mixsweep and bare loops in turn"
    publish("launch", title, figures, kind="bench", out=options.out)


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """Wall times of a launch, in seconds."""

    wall: float
    before: float
    """From the start of the command to the start of the first epoch."""
    after: float
    """From the end of the last epoch to the end of the command."""


def ours(study: str, overrides: list[str]) -> Launch:
    """Time a launch in an empty home."""
    with tempfile.TemporaryDirectory(prefix="launch-") as folder:
        mixsweep = CommandLine(home=Path(folder) / "home", data=data_root(), extra={})
        sets = [part for override in overrides for part in ("--set", override)]
        command = ["run", study, *sets, "--slots", str(SLOTS)]
        started = time.time()
        process = mixsweep.start(*command)
        said = process.communicate()
        assert process.returncode == 0, said
        ended = time.time()
        store = Store(str(mixsweep.home / "store"))
        runs = [result.facts for result in read_results(load_study(study, overrides).runs(), store)]
        first = min(facts[0].stored_at_ms / 1000 - facts[0].seconds for facts in runs)
        last = max(facts[-1].stored_at_ms / 1000 for facts in runs)
        return Launch(wall=ended - started, before=first - started, after=ended - last)


def bare(study: str, overrides: list[str]) -> float:
    """Return the wall seconds of the bare loops."""
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
