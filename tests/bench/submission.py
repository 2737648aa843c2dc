"""Time of a submitted job from the command to its first stored epoch.

    python -m tests.bench.submission [N]

The head node of the cluster is on this machine, and each job has its own home.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.state.results import read_results
from tests.bench.pairs import arguments_of
from tests.cluster.head import Head, started_head
from tests.soak.findings import publish


def seconds_to_first_epoch(head: Head, home: Path) -> float:
    """Return the seconds from the start of `mixsweep submit` to the first epoch in the store."""
    started = time.time()
    subprocess.run(
        [
            sys.executable, "-m", "mixsweep", "submit", "digits",
            "--address", head.address, "--home", str(home),
        ],
        env={**os.environ, **head.environment()}, check=True, capture_output=True,
    )  # fmt: skip
    results = read_results(load_study("digits").runs(), Store(str(home / "store")))
    return min(result.facts[0].stored_at_ms for result in results) / 1000 - started


def main(count: int, out: Path | None) -> None:
    """Measure and publish the times."""
    with tempfile.TemporaryDirectory() as folder, started_head() as head:
        seconds = [seconds_to_first_epoch(head, Path(folder) / str(i)) for i in range(count)]
    figures = {
        "jobs": count,
        "seconds_to_first_epoch": sorted(round(taken, 1) for taken in seconds),
        "median_seconds_to_first_epoch": statistics.median(seconds),
    }
    publish(
        "submission",
        "Submitted jobs, each to its first stored epoch",
        figures,
        kind="bench",
        out=out,
    )


if __name__ == "__main__":
    parser = arguments_of(__doc__)
    parser.add_argument("jobs", nargs="?", type=int, default=5)
    options = parser.parse_args()
    main(options.jobs, options.out)
