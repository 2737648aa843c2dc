"""Random kill -9 of workers, drivers and the tracking server, over many small sweeps."""

import argparse
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from statistics import fmean, median

from mixup_core.checkpoints import EpochFacts
from sweeps.results import RunResult
from tests.conftest import CommandLine
from tests.faults.invariants import Facts, assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task, ray_workers
from tests.faults.tracking_server import TrackingServer
from tests.soak.findings import publish
from tests.soak.place import Place

KINDS = {"worker": 6, "driver": 3, "tracking server": 1}
"""Kind of victim to its weight."""
SERVER_PORT = 5000


@dataclass(kw_only=True)
class Toll:
    """What the kills of all sweeps cost."""

    kills: Counter[str] = field(default_factory=Counter)
    epochs_lost: list[int] = field(default_factory=list)
    """Per kill of a worker or driver: epochs trained and not stored, as the clock tells."""
    launches: int = 0
    violations: list[str] = field(default_factory=list)


def main() -> None:
    """Run the sweeps and publish what was found; exit 1 if any promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=10)
    parser.add_argument("--kills", type=int, default=100, help="in all sweeps together, at least")
    parser.add_argument("--seed", type=int, default=0, help="of victims and moments")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    place = Place()
    server = TrackingServer(place.folder, SERVER_PORT)
    server.start()
    toll = Toll()
    started = time.monotonic()
    for number in range(options.sweeps):
        seeds = f"seeds=[{2 * number}, {2 * number + 1}]"
        task = Task(TWO_LAWS.file, (f"study=kills-{number}", seeds))
        undisturbed = place.home(f"undisturbed-{number}")
        with Launch(undisturbed, task) as launch:
            launch.end(0)
        quota = -(-options.kills * (number + 1) // options.sweeps) - toll.kills.total()
        mixsweep = place.home(f"disturbed-{number}")
        acknowledged = _disturb(mixsweep, task, server, quota, rng, toll)
        try:
            assert_nothing_was_lost(
                task, mixsweep, undisturbed, acknowledged=acknowledged, database=server.database
            )
        except AssertionError as error:
            toll.violations.append(f"sweep {number}: {error}")
    figures = {
        "sweeps": options.sweeps,
        "runs": 4 * options.sweeps,
        "kills": dict(toll.kills),
        "kills_in_all": toll.kills.total(),
        "launches": toll.launches,
        "stored_epochs_trained_again": 0 if not toll.violations else "see violations",
        "epochs_lost_per_kill_mean": fmean(toll.epochs_lost),
        "epochs_lost_per_kill_max": max(toll.epochs_lost),
        "mlflow_runs_in_trash": _in_trash(server),
        "sweeps_with_every_run_weight_point_and_table_identical": (
            options.sweeps - len(toll.violations)
        ),
        "violations": toll.violations,
        "minutes": (time.monotonic() - started) / 60,
        "seed": options.seed,
    }
    title = f"{toll.kills.total()} random kill -9 over {options.sweeps} sweeps"
    publish("kills", title, figures)
    server.kill()
    raise SystemExit(1 if toll.violations else 0)


def _disturb(
    mixsweep: CommandLine,
    task: Task,
    server: TrackingServer,
    quota: int,
    rng: random.Random,
    toll: Toll,
) -> Facts:
    """Launch a study until it is finished, kill `quota` times, and return what was stored then."""
    acknowledged: dict[str, tuple[EpochFacts, ...]] = {}
    while True:
        toll.launches += 1
        with Launch(mixsweep, task, "--tracking-uri", server.uri) as launch:
            while launch.process.poll() is None:
                time.sleep(rng.uniform(0.2, 2.0))
                kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
                if quota <= 0 or not ray_workers() or launch.process.poll() is not None:
                    continue
                results = task.results(launch.store)
                acknowledged |= {r.run.key: r.facts for r in results if r.facts}
                if not _kill(kind, launch, server, results, rng, toll):
                    continue
                quota -= 1
                if kind == "driver":
                    break
        if launch.process.returncode == 0:
            return acknowledged


def _kill(
    kind: str,
    launch: Launch,
    server: TrackingServer,
    results: tuple[RunResult, ...],
    rng: random.Random,
    toll: Toll,
) -> bool:
    """Kill one victim; return whether it lived until then."""
    workers = ray_workers()
    match kind:
        case "worker":
            workers = [rng.choice(workers)]
            try:
                launch.kill_worker(workers[0])
            except (AssertionError, ProcessLookupError):
                return False
        case "driver":
            launch.process.kill()
        case _:
            server.kill()
            time.sleep(rng.uniform(0.0, 5.0))
            server.start()
            workers = []
    if workers:
        toll.epochs_lost.append(sum(_epochs_in_flight(results, pid) for pid in workers))
    toll.kills[kind] += 1
    return True


def _epochs_in_flight(results: tuple[RunResult, ...], pid: int) -> int:
    """Return the whole epochs a worker can have trained since it stored its last stage."""
    for result in results:
        stage = result.stage
        if stage is None or result.outcome == "complete" or stage.environment["pid"] != str(pid):
            continue
        since = time.time() - stage.facts[-1].stored_at_ms / 1000
        return int(since / median(facts.seconds for facts in stage.facts))
    return 0


def _in_trash(server: TrackingServer) -> int:
    """Return the runs that were created twice, by a lost answer, and taken out again."""
    with closing(sqlite3.connect(server.database)) as connection:
        query = "SELECT count(*) FROM runs WHERE lifecycle_stage = 'deleted'"
        return int(connection.execute(query).fetchone()[0])


if __name__ == "__main__":
    main()
