"""What a launch with nothing to train costs, and what `plan` and `report` of large studies cost.

    python -m tests.bench.noop [--rounds N] [--runs RUNS ...]

Stages are made up and stored beforehand; everything else is the product. Seconds of CPU of the
command with its children, user and system together.
"""

import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mixup_core.images.data.fetching import data_root
from sweeps.reading.study_file import load_study
from tests.bench.pairs import arguments_of, spread
from tests.bench.stored import fill
from tests.conftest import CommandLine
from tests.soak.findings import publish

LARGE = str(Path(__file__).with_name("large.yaml"))
ARMS = 20


def cpu_of(mixsweep: CommandLine, *arguments: str) -> tuple[float, float]:
    """Return the seconds of CPU and of the clock that a command took."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = mixsweep.start(*arguments)
    said = process.communicate()  # a report of 10,000 runs takes minutes
    assert process.returncode == 0, said
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def nothing_to_train(folder: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Return what launches of the finished quickstart cost, first and again."""
    mixsweep = CommandLine(home=folder / "home", data=data_root(), extra={})
    mixsweep("data", "fetch", "fashion-mnist")
    fill(mixsweep.home, load_study("quickstart"))
    first = cpu_of(mixsweep, "run", "quickstart")
    again = [cpu_of(mixsweep, "run", "quickstart") for _ in range(rounds)]
    return {
        "first launch, CPU seconds": spread([first[0]]),
        "launch again, CPU seconds": spread([cpu for cpu, _ in again]),
        "launch again, wall seconds": spread([wall for _, wall in again]),
    }


def large(folder: Path, runs: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return what reading a study of so many runs of 100 epochs costs."""
    mixsweep = CommandLine(home=folder / "home", data=folder / "data", extra={})
    seeds = f"seeds={runs // ARMS}"
    fill(mixsweep.home, load_study(LARGE, [seeds]))
    return {
        f"{command}, CPU seconds": spread(
            [cpu_of(mixsweep, command, LARGE, "--set", seeds)[0] for _ in range(rounds)]
        )
        for command in ("plan", "status", "report")
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and publish."""
    parser = arguments_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, nargs="*", default=[500, 10_000])
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="noop-") as folder:
        figures = {
            "rounds": options.rounds,
            "goal, launch again, CPU seconds": 1.0,
            "nothing to train": nothing_to_train(Path(folder), options.rounds),
        }
    for runs in options.runs:
        with tempfile.TemporaryDirectory(prefix="noop-") as folder:
            rounds = options.rounds if runs <= 1000 else 1
            figures[f"{runs} runs of 100 epochs"] = large(Path(folder), runs, rounds)
    publish("noop", "Commands that train nothing", figures, kind="bench", out=options.out)


if __name__ == "__main__":
    main()
