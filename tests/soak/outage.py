"""A tracking server that is gone for minutes in the middle of a launch."""

import argparse
import time
from statistics import median

from tests.faults.invariants import assert_store_is_whole, assert_tracked
from tests.faults.launches import TWO_LAWS, Launch, Task
from tests.faults.tracking_server import TrackingServer
from tests.soak.findings import publish
from tests.soak.place import Place

BEFORE = 30.0
"""Seconds trained before the outage; as many at least are trained after it."""


def main() -> None:
    """Cause the outage and publish what it cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--epochs", type=int, required=True, help="enough to outlast the outage")
    options = parser.parse_args()
    place = Place()
    server = TrackingServer(place.folder, port=5000)
    server.start()
    task = Task(TWO_LAWS.file, ("study=outage", f"base.epochs={options.epochs}", "seeds=1"))
    mixsweep = place.home("outage")
    with Launch(mixsweep, task, "--tracking-uri", server.uri) as launch:
        launch.stage(task.study.runs()[0])
        time.sleep(BEFORE)
        server.kill()
        gone_from = time.time() * 1000
        time.sleep(options.seconds)
        gone_until = time.time() * 1000
        assert launch.process.poll() is None, "give it more epochs: it ended before the outage did"
        server.start()
        launch.end(0)
    results = task.results(launch.store)
    assert_store_is_whole(launch.store)
    assert_tracked(results, server.database)
    server.kill()
    facts = [fact for result in results for fact in result.facts]
    during = [f.seconds for f in facts if gone_from <= f.stored_at_ms < gone_until]
    outside = [f.seconds for f in facts if not gone_from <= f.stored_at_ms < gone_until]
    figures = {
        "seconds_unreachable": (gone_until - gone_from) / 1000,
        "epochs_during": len(during),
        "epochs_outside": len(outside),
        "epoch_seconds_during_median": median(during),
        "epoch_seconds_outside_median": median(outside),
        "training_time_ratio": median(during) / median(outside),
        "points_lost": 0,
        "runs_left_running": 0,
    }
    publish("outage", f"Tracking server gone for {options.seconds:.0f} s", figures)


if __name__ == "__main__":
    main()
