"""Cost of a launch with nothing to train, and of `plan` and `report` for large studies.

    python -m tests.bench.noop [--rounds N] [--runs RUNS ...]

Made-up stages are stored beforehand; everything else is the real program. The bench measures CPU
seconds (user and system) of the command with its children, and their peak memory in MB.
"""

import resource
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired

from mixup_core.images.data.fetching import data_root
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from tests.bench.pairs import arguments_of, spread
from tests.bench.stored import fill
from tests.conftest import CommandLine
from tests.soak.findings import publish

LARGE = str(Path(__file__).with_name("large.yaml"))
ARMS = 20


LOOK_EVERY = 0.05
"""Seconds between two samples of a command's memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Processor time and memory of one command."""

    cpu: float
    """CPU seconds of the command and its children."""
    wall: float
    """Wall seconds."""
    memory: float
    """Peak memory in MB."""


def cost_of(mixsweep: CommandLine, *arguments: str) -> Cost:
    """Run a command and return its cost; a report of 10,000 runs takes minutes."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process, memory = mixsweep.start(*arguments), 0.0
    status = Path("/proc") / str(process.pid) / "status"
    said: tuple[str, str] | None = None
    while said is None:
        # `getrusage` would count the memory of the process that began it too.
        peak = status.read_text().partition("VmHWM:")[2].split()
        memory = max(memory, int(peak[0]) * 1024 / 1e6 if peak else 0.0)
        with suppress(TimeoutExpired):
            said = process.communicate(timeout=LOOK_EVERY)
    assert process.returncode == 0, said
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu=cpu, wall=wall, memory=memory)


def nothing_to_train(folder: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Return the cost of the first and of a second launch of the finished quickstart."""
    mixsweep = CommandLine(home=folder / "home", data=data_root(), extra={})
    mixsweep("data", "fetch", "fashion-mnist")
    fill(Store(str(mixsweep.home / "store")), load_study("quickstart"))
    first = cost_of(mixsweep, "run", "quickstart")
    again = [cost_of(mixsweep, "run", "quickstart") for _ in range(rounds)]
    return {
        "first launch, CPU seconds": spread([first.cpu]),
        "launch again, CPU seconds": spread([cost.cpu for cost in again]),
        "launch again, wall seconds": spread([cost.wall for cost in again]),
        "launch again, MB": spread([cost.memory for cost in again]),
    }


def large(folder: Path, runs: int, epochs: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the cost of `plan` and `report` for a study with `runs` runs."""
    mixsweep = CommandLine(home=folder / "home", data=folder / "data", extra={})
    overrides = f"seeds={runs // ARMS}", f"base.epochs={epochs}"
    fill(Store(str(mixsweep.home / "store")), load_study(LARGE, overrides))
    figures = {}
    for command in ("plan", "status", "report"):
        options = [part for override in overrides for part in ("--set", override)]
        costs = [cost_of(mixsweep, command, LARGE, *options) for _ in range(rounds)]
        figures[f"{command}, CPU seconds"] = spread([cost.cpu for cost in costs])
        figures[f"{command}, MB"] = spread([cost.memory for cost in costs])
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and publish the costs."""
    parser = arguments_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, nargs="*", default=[500, 10_000])
    parser.add_argument("--epochs", type=int, default=100, help="of each of those")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="noop-") as folder:
        figures = {
            "rounds": options.rounds,
            "goal, launch again, CPU seconds": 1.0,
            "goal, report of 10000 runs, MB": 500,
            "nothing to train": nothing_to_train(Path(folder), options.rounds),
        }
    for runs in options.runs:
        with tempfile.TemporaryDirectory(prefix="noop-") as folder:
            rounds = options.rounds if runs <= 1000 else 1
            costs = large(Path(folder), runs, options.epochs, rounds)
            figures[f"{runs} runs of {options.epochs} epochs"] = costs
    publish("noop", "Commands that train nothing", figures, kind="bench", out=options.out)


if __name__ == "__main__":
    main()
