"""Interrupts of a large study: seconds until the prompt is back, and what MLflow then shows."""

import argparse
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from tests.conftest import CommandLine, hear_interrupts
from tests.faults.launches import Launch, Task
from tests.soak.findings import publish
from tests.soak.kills import quantile
from tests.soak.place import Place
from tests.soak.remains import remains, remains_after

TINY = str(Path(__file__).with_name("tiny.yaml"))
ARMS = 5
GOAL_SECONDS = 5.0
START_UPS = 0.25
"""Fraction of the interrupts that come within the first seconds."""
START_UP_SECONDS = 12.0
MOST_RUNS = 40
"""Largest number of runs that end between two interrupts."""
PATIENCE = 120.0

Group = Callable[[int, int], None]
SIGNALS: dict[signal.Signals, Group] = {
    signal.SIGINT: os.killpg,  # a terminal interrupts all that runs in it
    signal.SIGHUP: os.killpg,
    signal.SIGTERM: os.kill,  # a scheduler knows the process that it started
}


@dataclass(kw_only=True)
class Found:
    """Measurements of the interrupts so far."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Seconds until each launch had ended, by signal."""
    finished: list[int] = field(default_factory=list)
    """Number of stored runs at each interrupt."""
    codes: Counter[int] = field(default_factory=Counter)
    created: int = 0
    """Runs that MLflow has after an interrupt although nothing of them is stored."""
    left_running: int = 0
    left_behind: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    """Output of the launches that ended later than the goal, with the stacks of their threads."""

    def figures(self, *, runs: int) -> dict[str, Any]:
        """Return the measurements to publish."""
        every = [second for seconds in self.seconds.values() for second in seconds]
        return {
            "runs_of_the_study": runs,
            "interrupts": len(every),
            "seconds_to_prompt": _spread(every),
            "seconds_to_prompt_by_signal": {name: _spread(s) for name, s in self.seconds.items()},
            "more_than_the_goal_of_5_seconds": sum(second > GOAL_SECONDS for second in every),
            "runs_stored_at_the_interrupt": _spread(self.finished),
            "exit_codes": dict(self.codes),
            "mlflow_runs_created_by_interrupting": self.created,
            "mlflow_runs_left_running": self.left_running,
            "left_after_10_seconds": self.left_behind,
            "printed_by_slow_launches": self.slow,
        }


def main() -> None:
    """Interrupt launches one after another, and publish; exit with 1 if a guarantee was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interrupts", type=int, default=30)
    parser.add_argument("--runs", type=int, default=1_500, help=f"a multiple of {ARMS}")
    parser.add_argument("--seed", type=int, default=0, help="of moments")
    options = parser.parse_args()
    rng, place, found = random.Random(options.seed), Place(), Found()
    task = Task(TINY, (f"seeds={options.runs // ARMS}", "base.epochs=20", "base.eval_every=20"))
    mixsweep = place.home("interrupted", PYTHONFAULTHANDLER="1")
    signals = list(SIGNALS)
    hear_interrupts()
    for number in range(options.interrupts):
        _interrupt(mixsweep, task, signals[number % len(signals)], rng, found)
        title = f"{number + 1} interrupts of a study of {options.runs} runs"
        publish("interrupts", title, found.figures(runs=options.runs))
    every = [second for seconds in found.seconds.values() for second in seconds]
    is_kept = (
        quantile(every, 0.95) <= GOAL_SECONDS
        and not (found.created or found.left_running or found.left_behind)
        and set(found.codes) == {130}
    )
    raise SystemExit(0 if is_kept else 1)


def _interrupt(
    mixsweep: CommandLine, task: Task, number: signal.Signals, rng: random.Random, found: Found
) -> None:
    before = remains()
    stored = _stored(mixsweep)
    with Launch(mixsweep, task) as launch:
        if rng.random() < START_UPS:
            time.sleep(rng.uniform(0.5, START_UP_SECONDS))
        else:
            goal = stored + rng.randint(1, MOST_RUNS)
            while _stored(mixsweep) < goal and launch.process.poll() is None:
                time.sleep(rng.uniform(0.0, 0.1))
        known = set(_tracked(mixsweep))
        found.finished.append(_stored(mixsweep))
        interrupted_at = time.monotonic()
        SIGNALS[number](launch.process.pid, number)
        try:
            _, printed = launch.process.communicate(timeout=PATIENCE)
        except TimeoutExpired:
            launch.process.send_signal(signal.SIGABRT)  # prints what each thread is doing
            _, printed = launch.process.communicate()
        taken = time.monotonic() - interrupted_at
        if taken > GOAL_SECONDS:
            found.slow.append(f"{number.name}, {taken:.1f} s: {printed}")
        found.seconds.setdefault(number.name, []).append(taken)
    found.codes[launch.process.returncode] += 1
    tracked = _tracked(mixsweep)
    have_stored = {r.run.key for r in task.results(launch.store) if r.records}
    found.created += len(tracked.keys() - known - have_stored)
    found.left_running += list(tracked.values()).count("RUNNING")
    found.left_behind += [f"{number.name}: {name}" for name in remains_after(before)]


def _stored(mixsweep: CommandLine) -> int:
    """Return the number of finished runs; each has one stage."""
    return sum(1 for _ in (mixsweep.home / "store" / "stages").glob("*/*.json"))


def _tracked(mixsweep: CommandLine) -> dict[str, str]:
    """Return the status of each run in MLflow, by run key."""
    database = mixsweep.home / "mlflow.db"
    if not database.exists():
        return {}
    with closing(sqlite3.connect(database, timeout=60)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'tags'").fetchone():
            return {}
        rows = connection.execute(
            "SELECT t.value, r.status FROM runs r JOIN tags t USING (run_uuid) "
            "WHERE r.lifecycle_stage = 'active' AND t.key = 'run_key'"
        )
        return dict(rows.fetchall())


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {
        "median": quantile(values, 0.5),
        "min": min(values),
        "max": max(values),
        "n": len(values),
        "p95": quantile(values, 0.95),
    }


if __name__ == "__main__":
    main()
