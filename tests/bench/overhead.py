"""Cost of a run beyond its training, compared with the same runs in plain Ray Tune.

    python -m tests.bench.overhead [--pairs N]

Both train the same runs in two slots of this machine, in turn. Plain Tune starts an actor for each
run, writes MLflow by Ray's callback and keeps no checkpoints; `mixsweep run` reuses its actors.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.pairs import arguments_of, spread
from tests.conftest import CommandLine
from tests.faults.launches import Task
from tests.soak.findings import publish

SLOTS = 2


Cost = Mapping[str, float]
"""Times of one launch in seconds, except for `command` divided by the number of runs."""


def main() -> None:
    """Measure both in turn and publish the costs."""
    parser = arguments_of(__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    task = Task("digits", (f"seeds={options.seeds}", "base.epochs=20"))
    pairs = []
    for _ in range(options.pairs):
        with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
            pairs.append((ours(task, Path(folder)), plain(task, Path(folder))))
    mine, theirs = zip(*pairs, strict=True)
    figures = {
        "pairs": len(pairs),
        "runs": len(task.study.runs()),
        "slots": SLOTS,
        "wall_seconds_per_run": both(mine, theirs, "wall"),
        "wall_ratio_plain_to_mixsweep": spread([b["wall"] / a["wall"] for a, b in pairs]),
        "training_seconds_per_run": both(mine, theirs, "training"),
        "overhead_slot_seconds_per_run": both(mine, theirs, "overhead"),
        "overhead_ratio_plain_to_mixsweep": spread(
            [b["overhead"] / a["overhead"] for a, b in pairs]
        ),
        "command_seconds": both(mine, theirs, "command"),
    }
    runs = figures["runs"]
    title = f"{runs} runs of digits, mixsweep and plain Ray Tune with MLflow's callback in turn"
    publish("overhead", title, figures, kind="bench", out=options.out)


def ours(task: Task, folder: Path) -> Cost:
    """Train the study with mixsweep."""
    mixsweep = CommandLine(home=folder / "home", data=folder / "data", extra={})
    started = time.monotonic()
    mixsweep("run", *task.arguments, "--slots", str(SLOTS))
    command = time.monotonic() - started
    results = task.results(mixsweep.home / "store")
    assert {result.outcome for result in results} == {"complete"}
    first = [result.facts[0] for result in results]
    return cost(
        begun=[facts.stored_at_ms / 1000 - facts.seconds for facts in first],
        ended=[result.facts[-1].stored_at_ms / 1000 for result in results],
        seconds=[sum(facts.seconds for facts in result.facts) for result in results],
        command=command,
    )


def plain(task: Task, folder: Path) -> Cost:
    """Train the study with Ray Tune and MLflow's callback."""
    log = folder / "log.txt"
    given = CommandLine(home=folder / "home", data=folder / "data", extra={})
    started = time.monotonic()
    subprocess.run(
        [
            sys.executable, "-m", "tests.bench.plain_study",
            str(log), str(SLOTS), task.file, *task.overrides,
        ],
        env=given.environment(), check=True, capture_output=True,
    )  # fmt: skip
    command = time.monotonic() - started
    lines = [tuple(map(float, line.split())) for line in log.read_text().splitlines()]
    assert len(lines) == len(task.study.runs())
    begun, ended, seconds = zip(*lines, strict=True)
    return cost(begun=begun, ended=ended, seconds=seconds, command=command)


def cost(
    *, begun: Sequence[float], ended: Sequence[float], seconds: Sequence[float], command: float
) -> Cost:
    """Return the cost per run, from the Unix times at which runs began and ended.

    Overhead is the time of the slots that was not spent on training.
    """
    wall, training = (max(ended) - min(begun)) / len(seconds), sum(seconds) / len(seconds)
    overhead = SLOTS * wall - training
    return {"wall": wall, "training": training, "overhead": overhead, "command": command}


def both(mine: Sequence[Cost], theirs: Sequence[Cost], figure: str) -> dict[str, dict[str, float]]:
    """Return the spread of a measured value for both sides."""
    return {
        name: spread([one[figure] for one in costs])
        for name, costs in (("mixsweep", mine), ("plain", theirs))
    }


if __name__ == "__main__":
    main()
