"""Load: many tiny runs in one study, and their cost beyond training."""

import argparse
import resource
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from subprocess import TimeoutExpired

import psutil

from tests.conftest import CommandLine
from tests.faults.invariants import assert_store_is_whole, assert_tracked
from tests.faults.launches import Launch, Task
from tests.soak.findings import publish
from tests.soak.place import Place

TINY = str(Path(__file__).with_name("tiny.yaml"))
ARMS = 5
SLOTS = 2
SAMPLE_SECONDS = 0.2


def main() -> None:
    """Run them and publish the cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help=f"a multiple of {ARMS}")
    parser.add_argument("--epochs", type=int, default=100)
    options = parser.parse_args()
    place = Place()
    seeds = f"seeds={options.runs // ARMS}"
    task = Task(TINY, (seeds, f"base.epochs={options.epochs}", f"base.eval_every={options.epochs}"))
    mixsweep = place.home("load")
    peak = cpu = 0.0
    started = time.time()
    with Launch(mixsweep, task) as launch:
        driver = psutil.Process(launch.process.pid)
        while launch.process.returncode is None:
            with suppress(psutil.Error):
                peak = max(peak, driver.memory_info().rss)
                cpu = sum(driver.cpu_times()[:2])
            with suppress(TimeoutExpired):
                launch.process.communicate(timeout=SAMPLE_SECONDS)
        launch.end(0)
    ended = time.time()
    results = task.results(launch.store)
    assert [result.outcome for result in results] == ["complete"] * options.runs
    assert_store_is_whole(launch.store)
    assert_tracked(results, mixsweep.home / "mlflow.db")
    sync_wall, sync_cpu = _sync(mixsweep, task, place.folder / "empty.db")
    trained = sum(facts.seconds for result in results for facts in result.facts)
    ends = sorted(result.facts[-1].stored_at_ms / 1000 for result in results)
    begin = min(r.facts[0].stored_at_ms / 1000 - r.facts[0].seconds for r in results)
    wall = ends[-1] - begin
    figures = {
        "runs": options.runs,
        "epochs_per_run": options.epochs,
        "slots": SLOTS,
        "training_seconds_per_run": trained / options.runs,
        "overhead_slot_seconds_per_run": (SLOTS * wall - trained) / options.runs,
        "overhead_wall_seconds_per_run": (wall - trained / SLOTS) / options.runs,
        "seconds_from_start_to_first_run": begin - started,
        "seconds_from_last_epoch_to_exit": ended - ends[-1],
        "longest_gap_between_ends_seconds": max(b - a for a, b in pairwise(ends)),
        "driver_peak_rss_mb": peak / 1e6,
        "driver_cpu_seconds_per_run": cpu / options.runs,
        "tracking_from_empty_wall_seconds_per_run": sync_wall / options.runs,
        "tracking_from_empty_cpu_seconds_per_run": sync_cpu / options.runs,
        "tracking_database_kb_per_run": (
            (mixsweep.home / "mlflow.db").stat().st_size / 1000 / options.runs
        ),
        "runs_lost": 0,
        "points_lost": 0,
        "wall_minutes": (ended - started) / 60,
    }
    publish("load", f"{options.runs} tiny runs of {options.epochs} epochs", figures)


def _sync(mixsweep: CommandLine, task: Task, database: Path) -> tuple[float, float]:
    """Fill an empty database from the store; return wall and CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    process = mixsweep.start("sync", *task.arguments, "--tracking-uri", f"sqlite:///{database}")
    _, said = process.communicate()
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0, said
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
