"""Sharing: placement groups of several jobs on one Ray cluster, in tables as Ray gives them."""

from typing import Any
from unittest.mock import Mock

import pytest

from sweeps.running import sharing
from sweeps.running.placement import Slots
from sweeps.running.sharing import Sharing

SLOTS = Slots(count=4, limit=None, cpus_per_run=1, gpus_per_run=0.5, on_gpu=True)
TOTAL = {"CPU": 8.0, "GPU": 2.0}


class Cluster:
    """Placement groups of jobs, which look at them every ten seconds."""

    def __init__(self) -> None:
        self.table: dict[str, dict[str, Any]] = {}
        self.lines: list[str] = []
        self.now = 0.0
        self.sharing = Sharing(SLOTS, self.lines.append, lambda: self.table, lambda: self.now)

    def put(self, *names: str, state: str = "CREATED", gpus: float = 0.5) -> None:
        for name in names:
            self.table[name] = {"state": state, "bundles": {0: {"CPU": 1.0, "GPU": gpus}}}

    def look(self, times: int = 1) -> int:
        for _ in range(times):
            self.now += 10
            self.sharing.on_step_end(0, [])
        return self.sharing.limit


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    context, free = Mock(get_job_id=lambda: "-own"), {"CPU": 4.0, "GPU": 0.0}
    for name, value in (
        ("get_runtime_context", context),
        ("cluster_resources", TOTAL),
        ("available_resources", free),
    ):
        monkeypatch.setattr(sharing.ray, name, lambda value=value: value)
    return Cluster()


def test_a_launch_takes_its_part_of_the_slots_only_while_another_job_waits(
    cluster: Cluster,
) -> None:
    cluster.put("a-own", "b-own", "c-own", "d-own")
    assert cluster.look() == 4
    cluster.put("e-two", state="PENDING")
    assert cluster.look() == 2
    cluster.put("f-six", state="PENDING")
    assert cluster.look() == 1
    cluster.put("e-two", "f-six", state="REMOVED")
    assert cluster.look() == 4
    cluster.put("c-own", "d-own", state="REMOVED")
    cluster.put("e-two", gpus=1.0)
    cluster.put("f-two", state="PENDING")
    assert cluster.look() == 2, "a larger run of another job takes two slots"


def test_a_job_that_takes_no_free_slot_lowers_the_limit_for_a_minute_only(cluster: Cluster) -> None:
    cluster.put("a-own", "b-own", "c-own")
    cluster.put("e-two", state="PENDING")
    assert cluster.look(20) == 1, "this launch still holds more than its part"
    cluster.put("b-own", "c-own", state="REMOVED")
    assert cluster.look(2) == 1
    assert cluster.look(8) == 4
    cluster.put("f-two", state="PENDING")
    assert cluster.look() == 1
