"""A study of 10,000 runs without training: cost of one more run for driver, tracking and store.

    python -m tests.bench.scale [RUNS ...]

Ray, the store and MLflow's database are real and on this machine's disk; `tests.bench.stub`
replaces the trainer. Numbers of runs are multiples of the 20 arms of `scale.yaml`.
"""

import sqlite3
import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median
from subprocess import Popen, TimeoutExpired
from typing import Any

import psutil

from tests.bench.pairs import arguments_of
from tests.bench.stub import CHATTY, ENVIRONMENT
from tests.conftest import CommandLine
from tests.faults.invariants import assert_store_is_whole, assert_tracked
from tests.faults.launches import Task
from tests.soak.findings import publish

STUDY = str(Path(__file__).with_name("scale.yaml"))
ARMS = 20
SLOTS = 2
SAMPLE_SECONDS = 0.5
GOAL = 0.05
"""Required upper limit of slot-seconds per run, without training."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Measurements of the driver at one moment, and what MLflow shows at that moment."""

    at: float
    """Unix time in s."""
    cpu: float
    """CPU seconds since the start."""
    anonymous: int
    """Private (anonymous) memory in bytes."""
    finished: int
    """Number of runs that MLflow shows as finished."""


def main() -> None:
    """Measure each size, and publish the results with the slopes between sizes."""
    parser = arguments_of(__doc__)
    parser.add_argument("runs", nargs="*", type=int, default=[200, 1_000, 10_000])
    parser.add_argument("--more", nargs=2, type=int, default=[500, 200], help="epochs of a run")
    options = parser.parse_args()
    sizes = options.runs
    figures: dict[str, Any] = {"slots": SLOTS, "arms": ARMS, "sample_seconds": SAMPLE_SECONDS}
    figures["goal, slot_seconds_per_run"] = GOAL
    measured = {}
    for runs in sizes:
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            measured[runs] = measure(Path(folder), runs)
        figures[f"{runs} runs"] = measured[runs]
    for fewer, more in pairwise(sizes):
        figures[f"per run from {fewer} to {more}"] = {
            name: (measured[more][name] - measured[fewer][name]) / (more - fewer)
            for name in (
                "wall_seconds", "driver_cpu_seconds", "driver_anonymous_mb_when_trained",
                "driver_anonymous_mb_peak", "plan_seconds", "status_seconds",
            )
        }  # fmt: skip
    for chatty, more in zip(("reported", "stored"), options.more, strict=True):
        figures[f"every epoch {chatty}"] = measure_epochs(chatty, more=more)
    title = f"Studies of {', '.join(map(str, sizes))} runs, trainer stubbed"
    publish("scale", title, figures, kind="bench", out=options.out)


def measure(folder: Path, runs: int) -> Mapping[str, float]:
    """Return the measurements of one study with `runs` runs."""
    mixsweep = CommandLine(home=folder / "home", data=folder / "data", extra=ENVIRONMENT)
    task = Task(STUDY, (f"seeds={runs // ARMS}",))
    started = time.time()
    process = mixsweep.start("run", *task.arguments, "--slots", str(SLOTS))
    samples = list(watch(process, mixsweep.home / "mlflow.db"))
    ended = time.time()
    plan_seconds = seconds_of(mixsweep, "plan", task)
    status_seconds = seconds_of(mixsweep, "status", task)
    results = task.results(mixsweep.home / "store")
    assert [result.outcome for result in results] == ["complete"] * runs
    assert_store_is_whole(mixsweep.home / "store")
    assert_tracked(results, mixsweep.home / "mlflow.db")
    ends = sorted(result.facts[-1].stored_at_ms / 1000 for result in results)
    lags = tracking_lags(ends, samples)
    begun = min(result.facts[0].stored_at_ms / 1000 for result in results)
    trained = max((s for s in samples if s.at <= ends[-1]), key=lambda sample: sample.at)
    files = [path.stat() for path in (mixsweep.home / "store").rglob("*") if path.is_file()]
    return {
        "wall_seconds": ends[-1] - begun,
        "runs_per_second": runs / (ends[-1] - begun),
        "slot_seconds_per_run": SLOTS * (ends[-1] - begun) / runs,
        "seconds_from_start_to_first_epoch": begun - started,
        "seconds_from_last_epoch_to_exit": ended - ends[-1],
        "driver_cpu_seconds": trained.cpu,
        "driver_cpu_seconds_report_included": samples[-1].cpu,
        "driver_anonymous_mb_when_trained": trained.anonymous / 1e6,
        "driver_anonymous_mb_peak": max(sample.anonymous for sample in samples) / 1e6,
        "tracking_lag_seconds_median": median(lags),
        "tracking_lag_seconds_max": max(lags),
        "runs_not_tracked_at_last_epoch": runs - trained.finished,
        "runs_not_tracked_at_exit": 0,
        "plan_seconds": plan_seconds,
        "status_seconds": status_seconds,
        "tracking_database_kb_per_run": (mixsweep.home / "mlflow.db").stat().st_size / 1e3 / runs,
        "store_files_per_run": len(files) / runs,
        "store_kb_per_run": sum(file.st_size for file in files) / 1e3 / runs,
    }


def measure_epochs(chatty: str, more: int) -> Mapping[str, float]:
    """Return the cost of an epoch for the driver: reported only, or also stored and tracked.

    Args:
        chatty: `reported` or `stored`.
        more: Number of epochs by which the longer of two studies exceeds the other.
    """
    last = {}
    for epochs in (2, 2 + more):
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            mixsweep = CommandLine(
                home=Path(folder) / "home",
                data=Path(folder) / "data",
                extra={**ENVIRONMENT, CHATTY: chatty},
            )
            task = Task(STUDY, ("seeds=1", f"base.epochs={epochs}", f"base.eval_every={epochs}"))
            process = mixsweep.start("run", *task.arguments, "--slots", str(SLOTS))
            last[epochs] = list(watch(process, mixsweep.home / "mlflow.db"))[-1]
    short, long = last[2], last[2 + more]
    cpu = (long.cpu - short.cpu) / (ARMS * more)
    return {
        "epochs": ARMS * more,
        "driver_cpu_milliseconds_per_epoch": 1000 * cpu,
        "epochs_per_second_of_a_busy_core": 1 / cpu,
    }


def watch(process: "Popen[str]", database: Path) -> Iterator[Sample]:
    """Yield samples of a driver until it ends; it must end with all runs done."""
    driver = psutil.Process(process.pid)
    while process.returncode is None:
        with suppress(psutil.Error):
            memory = driver.memory_info()
            yield Sample(
                at=time.time(),
                cpu=sum(driver.cpu_times()[:2]),
                anonymous=memory.rss - memory.shared,
                finished=num_finished(database),
            )
        with suppress(TimeoutExpired):
            _, said = process.communicate(timeout=SAMPLE_SECONDS)
            assert process.returncode == 0, said


def num_finished(database: Path) -> int:
    """Return how many runs MLflow shows as finished, without the runs of arms."""
    with (
        suppress(sqlite3.Error),  # not there yet
        closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection,
    ):
        (count,) = connection.execute(
            "SELECT count(*) FROM runs WHERE status = 'FINISHED' AND name LIKE '% seed=%'"
        ).fetchone()
        return int(count)
    return 0


def tracking_lags(ends: Sequence[float], samples: Sequence[Sample]) -> list[float]:
    """Return, for each run, the seconds from its last epoch to a sample that shows it as finished.

    Samples have only the number of finished runs, so runs are assumed to finish in the order of
    their ends. A run that no sample shows as finished counts as finished after the last sample.
    """
    finished = list(accumulate((sample.finished for sample in samples), max))
    shown = (bisect_left(finished, number) for number in range(1, len(ends) + 1))
    return [
        max(0.0, samples[min(index, len(samples) - 1)].at - end)
        for end, index in zip(ends, shown, strict=True)
    ]


def seconds_of(mixsweep: CommandLine, command: str, task: Task) -> float:
    """Return the wall seconds of a command on a study."""
    started = time.monotonic()
    mixsweep.json(command, *task.arguments)
    return time.monotonic() - started


if __name__ == "__main__":
    main()
