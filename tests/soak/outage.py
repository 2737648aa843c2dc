"""Outage: a tracking server is down for minutes, compared with one that is not."""

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress
from statistics import median
from subprocess import TimeoutExpired

from mixup_core.store.manifests import EpochFacts
from tests.faults.invariants import EXPORTS, assert_store_is_whole, assert_tracked
from tests.faults.launches import TWO_LAWS, Launch, Task
from tests.faults.tracking_server import TrackingServer
from tests.soak.findings import publish
from tests.soak.place import Place

BEFORE_SECONDS = 20.0
"""Training time before the outage."""
OPTIONS = ("--slots", "1", "--tracking-uri")


def main() -> None:
    """Cause the outage and publish its cost.

    Both launches run at the same time in one slot each, so that other load slows both.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--epochs", type=int, required=True, help="enough to outlast the outage")
    options = parser.parse_args()
    place = Place()
    task = Task(TWO_LAWS.file, ("study=outage", f"base.epochs={options.epochs}", "seeds=1"))
    homes = {name: place.home(name) for name in ("reachable", "unreachable")}
    servers = {}
    for port, name in enumerate(homes, start=5000):
        (place.folder / f"{name}-server").mkdir()
        servers[name] = TrackingServer(place.folder / f"{name}-server", port)
        servers[name].start()
    server = servers["unreachable"]
    with (
        Launch(homes["reachable"], task, *OPTIONS, servers["reachable"].uri) as beside,
        Launch(homes["unreachable"], task, *OPTIONS, server.uri) as launch,
    ):
        beside.stage(task.study.runs()[0])
        launch.stage(task.study.runs()[0])
        time.sleep(BEFORE_SECONDS)
        if launch.process.poll() is not None:
            raise SystemExit(f"the runs ended before the outage: more epochs, {options.epochs=}")
        server.kill()
        gone_from = time.time()
        with suppress(TimeoutExpired):
            launch.process.wait(options.seconds)
        outlasted = launch.process.poll() is None
        gone_until = time.time()
        server.start()
        for one in (launch, beside):
            one.process.wait()
            one.end(0)
    homes["unreachable"]("sync", *task.arguments, "--tracking-uri", server.uri)
    facts = {}
    for name, home in homes.items():
        results = task.results(home.home / "store")
        assert_store_is_whole(home.home / "store")
        assert_tracked(results, servers[name].database)
        servers[name].kill()
        facts[name] = [fact for result in results for fact in result.facts]
    for export in EXPORTS:
        tables = {home.report("outage", export) for home in homes.values()}
        assert len(tables) == 1, export
    during = {
        name: [fact.seconds for fact in of if gone_from <= fact.stored_at_ms / 1000 < gone_until]
        for name, of in facts.items()
    }
    figures = {
        "seconds_unreachable": gone_until - gone_from,
        "training_outlasted_the_outage": outlasted,
        "epochs_of_each": len(facts["reachable"]),
        "epochs_trained_during": {name: len(seconds) for name, seconds in during.items()},
        "epoch_seconds_median_during": {name: median(of) for name, of in during.items()},
        "training_seconds": {name: _trained(of) for name, of in facts.items()},
        "training_time_ratio_whole": _trained(facts["unreachable"]) / _trained(facts["reachable"]),
        "training_time_ratio_during": median(during["unreachable"]) / median(during["reachable"]),
        "points_lost": 0,
        "runs_left_running": 0,
        "tables_identical": True,
    }
    publish("outage", f"Tracking server gone for {gone_until - gone_from:.0f} s", figures)


def _trained(facts: Sequence[EpochFacts]) -> float:
    return sum(fact.seconds for fact in facts)


if __name__ == "__main__":
    main()
