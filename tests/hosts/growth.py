"""Growth: a study on a cluster that starts without GPUs, and loses a node during training."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.hosts.host import OUTSIDE, hosts_in
from tests.hosts.operators import (
    Operator,
    assert_nothing_trained_twice,
    facts,
    places_in_use,
    results,
)
from tests.hosts.patience import num_epochs, wait_while_it_moves

NUM_GPUS = 8
IDLE_SECONDS = 20
"""Seconds after which a cluster releases an idle host."""
STATUS = f"ray status --address {OUTSIDE}:6379"


def trained_through_a_loss(
    operator: Operator, command: str, hosts: Path, store: Path
) -> Mapping[str, Any]:
    """Kill a host once all GPUs are busy, check that nothing is lost, and return measurements.

    Runs are held until then: a machine under load may start hosts more slowly than runs end. At the
    end, the same command trains nothing and starts no host.

    Args:
        operator: Person who sends the study.
        command: Command that sends it.
        hosts: Folder of the hosts.
        store: The store.
    """
    assert not hosts_in(hosts)
    operator.hold()
    joined: dict[str, float] = {}
    sent = time.monotonic()
    said = operator.begin(command)

    def all_busy() -> bool:
        assert said.poll() is None, operator.said
        for host in hosts_in(hosts):
            joined.setdefault(host.name, round(time.monotonic() - sent, 1))
        return len(places_in_use(results(store))) == NUM_GPUS

    def moved() -> object:
        logs = sum(log.stat().st_size for log in hosts.glob("*/commands.log"))
        return len(hosts_in(hosts)), logs, num_epochs(results(store)), len(operator.said)

    wait_while_it_moves(all_busy, moved)
    eight_busy = time.monotonic() - sent
    before = results(store)
    lost = hosts_in(hosts)[0]
    operator.type(STATUS)
    lost.kill()
    operator.release()
    wait_while_it_moves(lambda: said.poll() is not None, moved)
    out = operator.said
    end = f"exit {said.returncode}; {lost.name} was killed in training"
    operator.note(command, out, end, time.monotonic() - sent)
    assert said.returncode == 0, out
    assert "no node has a GPU yet: runs wait until nodes with GPUs join" in out
    after = results(store)
    assert [result.outcome for result in after] == ["complete"] * 8
    assert_nothing_trained_twice(facts(before), facts(after))
    ended = time.monotonic()
    wait_while_it_moves(lambda: not hosts_in(hosts), moved, patience=IDLE_SECONDS + 120)
    released = time.monotonic() - ended
    operator.type(STATUS)
    num_started = len(list(hosts.glob("*/pid")))
    assert "8 runs are stored, nothing to train" in operator.type(command)
    assert len(list(hosts.glob("*/pid"))) == num_started, "a node was started for nothing"
    return {
        "GPUs at first": 0,
        "seconds from submission to each host's start": list(joined.values()),
        "seconds from submission until 8 GPUs were busy": round(eight_busy, 1),
        "GPUs busy at the loss": len(places_in_use(before)),
        "epochs stored at the loss": num_epochs(before),
        "runs done": len(after),
        "node lost in training": lost.name,
        "hosts started in all": num_started,
        "epochs trained twice": 0,
        f"seconds to 0 GPUs after the end ({IDLE_SECONDS} s idle)": round(released, 1),
        "the same command again": "8 runs are stored, nothing to train",
    }
