"""Watch: what a launch records about its runs, from the callbacks of Tune."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import ray

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.reading.study_file import load_study
from sweeps.running.monitor import Monitor
from sweeps.running.placement import Slots
from sweeps.running.retries import Retries
from sweeps.running.run_queue import RunQueue
from sweeps.running.watch import Sharing, Watch
from sweeps.searching.sources import RunSource
from sweeps.state.results import RunResult
from sweeps.state.stages import plan_study
from tests.filled import put_epochs

STUDY = load_study("digits")
RUN = STUDY.runs()[0]


@pytest.fixture
def ended() -> list[RunResult]:
    """Return a list to which the results that a tracker receives are added."""
    return []


@pytest.fixture
def monitor(tmp_path: Path, ended: list[RunResult]) -> Monitor:
    store = Store(str(tmp_path))
    source = RunSource(STUDY, plan_study(STUDY, store).pending)
    tracker = Mock(reconcile=ended.extend)
    monitor = Monitor(source=source, store=store, tracker=tracker, lease=Mock())
    monitor.join(source.more(()))
    return monitor


@pytest.fixture
def watch(monitor: Monitor) -> Watch:
    return Watch(monitor, RunQueue(monitor.source, monitor.join), Retries(limit=1))


def trial() -> Any:
    return SimpleNamespace(config={"run_key": RUN.key}, num_failures=0)


def report(kind: str, message: str) -> dict[str, Any]:
    failure = {"kind": kind, "message": message, "epoch": None}
    return {
        "epochs": 2, "trained": True, "within": 0.0, "rows": [], "warnings": ["is damaged"],
        "failure": failure,
    }  # fmt: skip


def test_a_failure_is_stored_without_the_secrets_in_its_message_and_traceback(
    monitor: Monitor,
) -> None:
    said = "OSError: https://me:hidden@host/x"
    monitor.fail(RUN, kind="failed", message=said, epoch=None, attempts=1, trace=f"line 1\n{said}")
    failure = monitor.store.failures.read_all()[RUN.key]
    clean = "OSError: https://***@host/x"
    assert (failure.message, failure.trace) == (clean, f"line 1\n{clean}")


def test_a_reported_failure_is_kept_and_tracked_with_the_last_stored_epoch(
    watch: Watch, monitor: Monitor, ended: list[RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[str] = []
    monkeypatch.setattr(Monitor, "note", lambda _, line: noted.append(line))
    for epochs in (1, 2):
        put_epochs(monitor.store, RUN, epochs)
    watch.on_trial_start(1, [], trial())
    watch.on_trial_result(1, [], trial(), report("failed", "RuntimeError: no"))
    watch.on_trial_complete(1, [], trial())
    (end,) = ended
    assert (end.outcome, len(end.records)) == ("failed", 2)
    assert monitor.failures[RUN.key].message == "RuntimeError: no"
    assert noted[0] == "erm seed 0: is damaged"
    assert monitor.store.failures.read_all()[RUN.key] == monitor.failures[RUN.key]


def test_a_store_error_at_the_end_of_a_run_does_not_stop_other_runs(
    watch: Watch, ended: list[RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "read_all", Mock(side_effect=StoreError("unreachable")))
    watch.on_trial_start(1, [], trial())
    watch.on_trial_complete(1, [], trial())
    assert ended == []


def test_an_interrupt_that_a_library_swallows_ends_the_step(watch: Watch) -> None:
    watch.is_interrupted = lambda: True
    with pytest.raises(KeyboardInterrupt):
        watch.on_step_end(1, [])


SLOTS = Slots(count=4, limit=None, gpus_per_run=0.5, on_gpu=True)
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
        monkeypatch.setattr(ray, name, lambda value=value: value)
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


def test_a_launch_whose_slots_others_hold_names_them_in_one_line_from_its_second_look(
    cluster: Cluster,
) -> None:
    cluster.put("a-own", state="PENDING")
    cluster.put("e-two", "f-two", "g-two", "h-two")
    cluster.look()
    assert cluster.lines == [], "Ray may still be placing the run"
    cluster.look(3)
    said = "waiting: 4 of 4 slots are held by other jobs"
    assert cluster.lines == [said]
    cluster.put("a-own")
    cluster.look()
    cluster.put("a-own", state="PENDING")
    cluster.look(3)
    assert cluster.lines == [said, said]
