"""Kills: random kill -9 of every kind of process of a launch, over many small sweeps."""

import argparse
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil

from mixup_core.store.manifests import EpochFacts
from sweeps.state.results import RunResult, last_attempt
from tests.conftest import CommandLine
from tests.faults.invariants import Facts, assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task, is_ray_worker, ray_workers, wait_for
from tests.faults.tracking_server import TrackingServer
from tests.soak.findings import publish
from tests.soak.place import Place
from tests.soak.remains import remains, remains_after

EVERY_NTH_WITH_SERVER = 3
"""Every n-th sweep writes to a tracking server, which is killed once; the others write to a
database.
"""
START_UPS = 0.25
"""Fraction of the kills that do not wait until a run is in training."""
PAUSE_SECONDS = (0.2, 2.5)
"""Random pause between two kills, in seconds."""
HEADS = ("raylet", "gcs_server")
"""Names of the processes of a launch's Ray cluster."""
OWN_WORDS = ("the Ray cluster has died: Ray's process ", "Ray did not start on this machine")
"""Message of a launch that has lost one of these processes."""
SERVER_PORT = 5000
INTERVAL_SECONDS = 20.0
"""Training seconds after which a stage is stored at the latest, unless one epoch takes longer."""
ENDS_WITHIN = 15.0
"""Seconds within which a launch must end after the loss of its raylet or GCS."""
OTHER_EXIT_CODES = {1, -signal.SIGKILL}
"""Exit codes of a launch that was killed, or whose worker died too often."""


@dataclass(kw_only=True)
class Toll:
    """Total cost of the kills of all sweeps."""

    kills: Counter[str] = field(default_factory=Counter)
    launches: int = 0
    seconds_to_end: list[float] = field(default_factory=list)
    """Seconds until the launch had ended, for each killed raylet or GCS."""
    launches_without_own_words: int = 0
    """Number of these launches that did not say which process was lost."""
    left_behind: list[str] = field(default_factory=list)
    """Processes and folders that exist 10 s after the last launch of a sweep."""
    sweeps: int = 0
    redone: list[tuple[float, int]] = field(default_factory=list)
    """Seconds since the last stored epoch, for each run whose process was killed, and the whole
    epochs that fit into that time.
    """
    violations: list[str] = field(default_factory=list)

    @property
    def redone_too_much(self) -> int:
        """Number of times that a run lost more than one interval between stored stages."""
        return sum(seconds > INTERVAL_SECONDS and epochs > 1 for seconds, epochs in self.redone)


def main() -> None:
    """Run the sweeps and publish what was found; exit 1 if any promise was broken, or not tried
    as often as was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=10, help="more where they end too early")
    parser.add_argument("--kills", type=int, default=100, help="in all sweeps together")
    parser.add_argument("--heads", type=int, default=3, help="kills of each kind in a sweep")
    parser.add_argument("--minutes", type=float, default=60.0, help="no sweep begins after them")
    parser.add_argument("--seed", type=int, default=0, help="of victims and moments")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    place = Place()
    references = {task: place.home(f"undisturbed-{n}") for n, task in enumerate(TASKS)}
    for task, home in references.items():
        with Launch(home, task) as launch:
            launch.end(0)
    toll = Toll()
    started = time.monotonic()
    per_sweep = -(-options.kills // options.sweeps)
    for number in count():
        is_late = time.monotonic() - started > 60 * options.minutes
        if is_late or (number >= options.sweeps and toll.kills.total() >= options.kills):
            break
        served = number % EVERY_NTH_WITH_SERVER == 0
        folder = place.folder / f"sweep-{number}"
        folder.mkdir()
        server = TrackingServer(folder, SERVER_PORT) if served else None
        task = TASKS[number % len(TASKS)]
        kinds = schedule(per_sweep, heads=options.heads, served=served, rng=rng)
        _sweep(place.home(folder.name), references[task], task, server, kinds, rng, toll)
        minutes = (time.monotonic() - started) / 60
        figures = {**_figures(toll), "minutes": minutes, "seed": options.seed}
        title = f"{toll.kills.total()} random kill -9 of every kind of process of a launch"
        publish(f"kills-{options.seed}", title, figures)
    wrong = broken(toll, kills=options.kills)
    print("\n".join(wrong) or "every promise was kept")  # noqa: T201
    raise SystemExit(1 if wrong else 0)


def broken(toll: Toll, *, kills: int) -> list[str]:
    """Return the broken guarantees, one per line.

    Args:
        toll: Total of all sweeps.
        kills: Number of planned kills; a guarantee that was not tested counts as broken.
    """
    counted = {
        "launches that did not say what was gone": toll.launches_without_own_words,
        f"launches that took more than {ENDS_WITHIN:g} s to end": sum(
            seconds > ENDS_WITHIN for seconds in toll.seconds_to_end
        ),
        "runs that lost more than an interval": toll.redone_too_much,
    }
    done = toll.kills.total()
    return [
        *([f"{done} of {kills} kills"] if done < kills else []),
        *(f"{number} {what}" for what, number in counted.items() if number),
        *(f"left behind: {name}" for name in toll.left_behind),
        *toll.violations,
    ]


QUICK_AND_MANY = ("base.model={name: mlp}", "base.epochs=240")
TASKS = tuple(
    Task(file, QUICK_AND_MANY)
    for file in (
        str(Path(__file__).with_name("points.yaml")),
        str(Path(__file__).with_name("teachers.yaml")),
        str(Path(TWO_LAWS.file).with_name("forks.yaml")),
        TWO_LAWS.file,
    )
)
"""Small studies that outlive ten kills: a search, teachers, forks, and independent runs."""


def schedule(kills: int, *, heads: int, served: bool, rng: random.Random) -> list[str]:
    """Return the victims of a sweep in random order: one or two drivers, the rest workers.

    A killed driver, raylet or GCS ends its launch.

    Args:
        kills: Number of kills.
        heads: Number of kills of each process in `HEADS`.
        served: Whether there is a tracking server to kill.
        rng: Random generator for the order.
    """
    others = [*HEADS * heads, *["driver"] * rng.randint(1, 2), *["tracking server"] * served]
    kinds = others + ["worker"] * (kills - len(others))
    rng.shuffle(kinds)
    return kinds


def _sweep(
    disturbed: CommandLine,
    undisturbed: CommandLine,
    task: Task,
    server: TrackingServer | None,
    kinds: list[str],
    rng: random.Random,
    toll: Toll,
) -> None:
    """Run a study with kills, compare it with the undisturbed one, and add up the cost."""
    tracking: tuple[str, ...] = ()
    database = disturbed.home / "mlflow.db"
    if server is not None:
        server.start()
        tracking, database = ("--tracking-uri", server.uri), server.database
    acknowledged = _disturb(disturbed, task, server, tracking, kinds, rng, toll)
    disturbed("sync", *task.arguments, *tracking)
    if server is not None:
        server.kill()
    toll.sweeps += 1
    try:
        assert_nothing_was_lost(
            task, disturbed, undisturbed, acknowledged=acknowledged, database=database
        )
    except AssertionError as error:
        toll.violations.append(f"{disturbed.home.name}: {error}")


def _disturb(
    mixsweep: CommandLine,
    task: Task,
    server: TrackingServer | None,
    tracking: tuple[str, ...],
    kinds: list[str],
    rng: random.Random,
    toll: Toll,
) -> Facts:
    """Launch a study until it is finished, with kills while it lives.

    Returns:
        Every epoch that was stored at some kill, by run key.
    """
    stored: dict[str, tuple[EpochFacts, ...]] = {}
    before = remains()
    while True:
        toll.launches += 1
        ended_after = None
        with Launch(mixsweep, task, *tracking) as launch:
            while kinds and launch.process.poll() is None:
                in_training = rng.random() >= START_UPS
                while in_training and launch.process.poll() is None and not _is_training(launch):
                    time.sleep(0.05)
                time.sleep(rng.uniform(*PAUSE_SECONDS))
                results = launch.task.results(launch.store)
                killed = _kill(kinds[-1], launch, server, rng, results, toll)
                if killed is not None:
                    ended_after = killed or None
                    for result in results:
                        stored[result.run.key] = max(
                            stored.get(result.run.key, ()), result.facts, key=len
                        )
                    toll.kills[kinds.pop()] += 1
            _, said = launch.process.communicate()
            code = launch.process.returncode
        if code == 0:
            toll.left_behind += [f"{mixsweep.home.name}: {name}" for name in remains_after(before)]
            return stored
        if ended_after is not None:
            toll.seconds_to_end.append(ended_after)
            toll.launches_without_own_words += not any(words in said for words in OWN_WORDS)
        if code not in OTHER_EXIT_CODES:
            toll.violations.append(f"{mixsweep.home.name}: a launch ended with {code}")


def _kill(
    kind: str,
    launch: Launch,
    server: TrackingServer | None,
    rng: random.Random,
    results: Collection[RunResult],
    toll: Toll,
) -> float | None:
    """Kill one victim; None if none was alive, else seconds until the launch ended or 0."""
    workers = ray_workers()
    if kind == "worker":
        workers = rng.sample(workers, k=min(1, len(workers)))
        if not workers:
            return None
    at_ms = time.time_ns() // 1_000_000
    ended_after = 0.0
    try:
        match kind:
            case "worker":
                os.kill(workers[0], signal.SIGKILL)
            case "driver":
                if launch.process.poll() is not None:
                    return None
                launch.process.kill()
                launch.process.wait()
            case "raylet" | "gcs_server":
                if (victim := _below(launch, kind)) is None:
                    return None
                ended_after = _behead(launch, kind, victim)
            case _:
                server.kill()
                time.sleep(rng.uniform(0.0, 5.0))
                server.start()
                workers = []
    except (ProcessLookupError, psutil.NoSuchProcess):
        return None
    lost = losses(results, workers, since_ms=launch.started_at_ms, at_ms=at_ms)
    toll.redone += lost.values()
    if kind != "tracking server":
        wait_for(lambda: not any(map(is_ray_worker, workers)), timeout=60)
    return ended_after


def _behead(launch: Launch, kind: str, victim: psutil.Process) -> float:
    """Kill the raylet or GCS of a launch; return the seconds until it ended; 0 if it goes on."""
    killed_at = time.monotonic()
    victim.kill()
    # A launch that was starting Ray may start it once more, and goes on.
    wait_for(
        lambda: launch.process.poll() is not None or _below(launch, kind) not in {None, victim}
    )
    return 0.0 if launch.process.poll() is None else time.monotonic() - killed_at


def _below(launch: Launch, name: str) -> psutil.Process | None:
    """Return the process with a name that a launch has started; None if there is none yet."""
    found = psutil.Process(launch.process.pid).children()
    living = (process for process in found if process.status() != psutil.STATUS_ZOMBIE)
    return next((process for process in living if process.name() == name), None)


def _is_training(launch: Launch) -> bool:
    """Return whether a living worker has stored an epoch of a run that it is training."""
    workers, since_ms = ray_workers(), launch.started_at_ms
    results = launch.task.results(launch.store) if workers else ()
    return bool(losses(results, workers, since_ms=since_ms, at_ms=since_ms))


def losses(
    results: Collection[RunResult], workers: Collection[int], *, since_ms: int, at_ms: int
) -> dict[str, tuple[float, int]]:
    """Return seconds and whole epochs since the last stored epoch, by key of a killed run.

    Only runs whose last stage is their own are counted.

    The last stage of a run that waits for its turn can be one of another run, which shares its
    epochs; the process of that run may train on. A run that was killed before it had stored a stage
    itself is not counted.

    Args:
        results: Results of the study's runs, read before the kill.
        workers: Pids of the killed processes.
        since_ms: Time at which the launch began; an earlier one had other processes, which may have
            had the same pids.
        at_ms: Time of the kill.
    """
    found = {}
    for result in results:
        stage = result.stage
        if stage is None or result.outcome == "complete":
            continue
        is_own = last_attempt(stage, result.run.key) > 0
        stored_at_ms = stage.facts[-1].stored_at_ms
        if is_own and stored_at_ms >= since_ms and int(stage.environment["pid"]) in workers:
            seconds = max(0.0, (at_ms - stored_at_ms) / 1000)
            typical = median(facts.seconds for facts in stage.facts)
            found[result.run.key] = (seconds, int(seconds / typical))
    return found


def _figures(toll: Toll) -> dict[str, Any]:
    return {
        "sweeps": toll.sweeps,
        "kills": dict(toll.kills),
        "kills_in_all": toll.kills.total(),
        "launches": toll.launches,
        "seconds_from_killed_raylet_or_gcs_to_end_of_launch": _spread(toll.seconds_to_end),
        "launches_that_did_not_say_what_was_gone": toll.launches_without_own_words,
        "left_after_10_seconds": toll.left_behind,
        "runs_in_training_when_killed": len(toll.redone),
        "epochs_redone_per_kill_and_slot": _spread([epochs for _, epochs in toll.redone]),
        "seconds_redone_per_kill_and_slot": _spread([seconds for seconds, _ in toll.redone]),
        "redone_more_than_an_interval": toll.redone_too_much,
        "violations": toll.violations,
    }


def _spread(values: Collection[float]) -> dict[str, float]:
    if not values:
        return {"n": 0}
    return {
        "n": len(values),
        "median": median(values),
        "p95": float(np.quantile(list(values), 0.95)),
        "max": max(values),
    }


if __name__ == "__main__":
    main()
