"""The driver with more slots than this machine has: how many runs it can start and end per second.

    python -m tests.bench.slots [--slots N] [--seconds S] [--runs RUNS] [--out FOLDER]

Lease, plan, queue, monitor, store and MLflow are those of a launch. The engine is replaced by a
fake, in which a run ends after a given time, within 5 %, and another process stores its result. The
cost of Ray itself is measured by the bench `scale`.
"""

import heapq
import random
import resource
import sys
import tempfile
import time
from contextlib import redirect_stderr
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from reports.numbers.runs import summariser
from sweeps.leasing.lease import Lease
from sweeps.reading.study_file import load_study
from sweeps.running.attempt import Driver
from sweeps.running.monitor import Monitor
from sweeps.running.run_queue import RunQueue
from sweeps.searching.sources import FixedSource
from sweeps.state.results import read_results
from sweeps.state.stages import PlannedRun, plan_study
from sweeps.tracking.connection import load
from sweeps.tracking.study_log import StudyLog
from sweeps.tracking.tracker import Tracker
from tests.bench.pairs import arguments_of
from tests.bench.scale import ARMS, STUDY, num_finished
from tests.bench.stored import fill_run
from tests.soak.findings import publish


def main() -> None:
    """Measure and publish the results."""
    parser = arguments_of(__doc__)
    parser.add_argument("--slots", type=int, default=130)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--runs", type=int, default=1_300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slots-") as folder:
        found = measure(Path(folder), options.slots, options.seconds, options.runs)
    figures = {"slots": options.slots, "seconds_of_a_run": options.seconds} | found
    title = (
        f"A driver with {options.slots} slots and runs of {options.seconds:g} s, its engine faked"
    )
    publish("slots", title, figures, kind="bench", out=options.out)


def measure(home: Path, slots: int, seconds: float, runs: int) -> dict[str, float]:
    """Return the runs that the driver ends per second, the waiting of slots, and CPU per run."""
    study = load_study(STUDY, [f"seeds={max(1, runs // ARMS)}"])
    store, database = Store(str(home / "store")), home / "mlflow.db"
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    trainer = context.Process(target=store_results, args=(str(home / "store"), theirs))
    trainer.start()
    rng, waits = random.Random(0), []
    with (
        (home / "console.txt").open("w") as console,
        redirect_stderr(console),
        Lease.acquire(store, study.name, "bench") as lease,
    ):
        source = FixedSource(study, plan_study(study, store))
        artifacts = (home / "artifacts").as_uri()
        tracker = Tracker(
            StudyLog(
                study, f"sqlite:///{database}", summariser=summariser,
                artifact_location=artifacts,
            ),
            may_write=lease.is_held,
        )  # fmt: skip
        load()  # as a launch does while Ray starts
        tracker.start(read_results(study.runs(), store))
        while not database.exists():
            time.sleep(0.1)
        monitor = Monitor(
            source=source, store=store, tracker=tracker, lease=lease, slots=slots, is_live=False
        )
        queue = RunQueue(source, monitor.join, source.more(()))
        driver = Driver(lambda _: None)
        cpu, begun = _cpu(), time.monotonic()
        free = [begun] * slots
        ends: list[tuple[float, int, PlannedRun]] = []
        stored: dict[str, Any] = {}
        ended = 0
        while ended < len(study.runs()):
            while free and (planned := queue.next()) is not None:
                now = time.monotonic()
                waits.append(now - free.pop())
                monitor.start(planned.run)
                ours.send(planned.run)
                length = seconds * rng.uniform(0.95, 1.05)
                heapq.heappush(ends, (now + length, ended + len(ends), planned))
            now = time.monotonic()
            if ends and ends[0][0] <= now:
                due, _, planned = heapq.heappop(ends)
                rows = _rows(ours, stored, planned.run.key)
                report = driver.said(epochs=len(rows), trained=True, rows=rows, done=True)
                monitor.report(planned.run, report)
                queue.store(planned.run.key, planned.run.config.epochs)
                monitor.end(planned.run)
                queue.end(planned.run.key, failed=False)
                free.append(due)
                ended += 1
            elif ends:
                time.sleep(min(0.01, ends[0][0] - now))
            monitor.step()
        wall, spent, tracked = time.monotonic() - begun, _cpu() - cpu, num_finished(database)
        monitor.close()
        closing = time.monotonic()
        assert tracker.close(read_results(study.runs(), store))
        lag = time.monotonic() - closing
    ours.send(None)
    trainer.join()
    later = waits[slots:] or waits
    return {
        "runs": ended,
        "runs_per_second": ended / wall,
        "runs_per_second_if_no_slot_waited": slots / seconds,
        "wait_of_a_slot_seconds_median": median(later),
        "wait_of_a_slot_seconds_most": max(later),
        "driver_cpu_milliseconds_per_run": 1000 * spent / ended,
        "runs_not_tracked_at_last_end": ended - tracked,
        "seconds_from_last_end_to_all_tracked": lag,
    }


def store_results(store: str, runs: Connection) -> None:
    """Store the result of each run that arrives, and send its rows back; stop at None."""
    place = Store(store)
    while (run := runs.recv()) is not None:
        fill_run(place, run)
        stage = place.read(stage_keys(run.config)[-1])
        assert stage is not None
        rows = [
            {**record.to_plain(), "seconds": facts.seconds, "stored_at_ms": facts.stored_at_ms}
            for record, facts in zip(stage.records, stage.facts, strict=True)
        ]
        runs.send((run.key, rows))


def _rows(trainer: Any, stored: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the rows of one run from the queue; rows of other runs are kept for later."""
    while key not in stored:
        other, rows = trainer.recv()
        stored[other] = rows
    found: list[dict[str, Any]] = stored.pop(key)
    return found


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
