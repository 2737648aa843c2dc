"""Trainable: what a trial reports to the driver, and what it refuses, without Ray."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mixup_core.numeric_settings import require_instructions
from mixup_core.problem import DivergedError
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease, ask_to_stop
from sweeps.running import attempt as attempts
from sweeps.running import trainable
from sweeps.running.assignment import Assignment
from sweeps.running.attempt import Driver, train
from sweeps.running.trainable import train_run
from sweeps.study.study import Run
from tests.damages import DAMAGES
from tests.filled import put_epochs
from tests.sweeps.running.test_storing import BASE

Report = dict[str, Any]


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """Return the reports of a run, without the final one."""
    told: list[Report] = []
    monkeypatch.setattr(trainable.tune, "report", told.append)
    monkeypatch.setattr(trainable.ray, "get_gpu_ids", lambda: [0])
    monkeypatch.setattr(trainable, "_place", dict)  # only Ray knows where this is
    return told


def _assignment(folder: Path, **given: Any) -> Assignment:
    return Assignment(config=BASE, store=str(folder), data_root=str(folder), **given)


def _epochs(told: Sequence[Report]) -> list[tuple[int, list[int]]]:
    return [(said["epochs"], [row["epoch"] for row in said["rows"]]) for said in told]


@pytest.mark.parametrize(
    ("report_every", "heard"),
    [
        (math.inf, [(2, [0, 1]), (4, [2, 3])]),
        (0.0, [(1, [0]), (2, [1]), (3, [2]), (4, [3])]),
    ],
)
def test_a_run_reports_epochs_that_other_runs_need_before_the_next_interval(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reports: list[Report],
    report_every: float,
    heard: list[tuple[int, list[int]]],
) -> None:
    monkeypatch.setattr("sweeps.running.storing.STORE_AT_LEAST_EVERY", 0.0)
    # All writes are waited for.
    monkeypatch.setattr("sweeps.running.storing._STORE_COST_SHARE", 0.0)
    assignment = _assignment(tmp_path, keep=frozenset({2}), report_every=report_every)
    last = train(assignment, Driver(reports.append), {})
    assert _epochs([*reports, last]) == heard
    assert [said["done"] for said in reports] == [False] * (len(heard) - 1)
    assert last["done"]
    reports.clear()
    again = train(assignment, Driver(reports.append), {})
    assert (reports, _epochs([again]), again["done"]) == ([], [(4, [0, 1, 2, 3])], True)


def test_a_long_epoch_reports_its_progress_during_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reports: list[Report]
) -> None:
    monkeypatch.setattr(attempts, "LONG_EPOCH", 0.0)
    assignment = _assignment(tmp_path, report_every=math.inf)
    last = train(assignment, Driver(reports.append), {})
    shares = [(said["epochs"], said["within"]) for said in reports]
    steps = len(shares) // BASE.epochs
    assert steps > 1
    assert shares == [
        (epoch, (step + 1) / steps) for epoch in range(BASE.epochs) for step in range(steps)
    ]
    stored = [row["epoch"] for said in [*reports, last] for row in said["rows"]]
    assert stored == list(range(BASE.epochs))
    assert all(said["trained"] == bool(said["rows"]) for said in reports)
    assert (last["within"], last["epochs"]) == (0.0, BASE.epochs)


def test_a_run_fails_with_a_message_if_the_processor_lacks_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : fpu sse2\n")
    found = partial(require_instructions, cpuinfo=str(cpuinfo))
    monkeypatch.setattr(attempts, "require_instructions", found)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    failure = attempts.attempt(_assignment(tmp_path), Driver(print), {})["failure"]
    assert failure["kind"] == "failed"
    assert "ATEN_CPU_CAPABILITY is avx2, but this processor lacks" in failure["message"]


def _divergence(assignment: Assignment, driver: Driver, place: object) -> Report:
    driver.report(epochs=1, rows=())
    raise DivergedError("its loss", epoch=2)


def _error(assignment: Assignment, driver: Driver, place: object) -> Report:
    raise ZeroDivisionError("by 0")


@pytest.mark.parametrize(
    ("ends", "kind", "epoch"),
    [(_divergence, "diverged", 2), (_error, "failed", None), (None, "stopped", None)],
)
def test_a_failure_is_the_last_report_of_a_run(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    reports: list[Report],
    ends: Callable[[Assignment, Driver, object], Report] | None,
    kind: str,
    epoch: int | None,
) -> None:
    with Lease.acquire(store, "study", "mixsweep run study") as lease:
        if ends is None:
            ask_to_stop(store, "study", lease.holder, "now")
        else:
            monkeypatch.setattr(attempts, "train", ends)
        last = train_run(_parameters(store, lease))
    assert (last["failure"]["kind"], last["failure"]["epoch"], last["done"]) == (kind, epoch, True)
    assert not any(said["failure"] or said["done"] for said in reports)


@pytest.mark.usefixtures("reports")
def test_a_lack_of_memory_is_raised_so_that_the_run_is_tried_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "train", Mock(side_effect=MemoryError))
    with Lease.acquire(store, "study", "mixsweep run study") as lease, pytest.raises(MemoryError):
        train_run(_parameters(store, lease))


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_damaged_or_refused_state_is_reported_and_its_epochs_are_trained_again(
    store: Store, reports: list[Report], is_cut: bool
) -> None:
    key = put_epochs(store, Run(arm="arm", config=BASE), 3, b"no state")
    if is_cut:
        (file,) = (store.folder / "states").rglob(f"{key}-*.bin")
        DAMAGES["truncated"](file)
    with Lease.acquire(store, "study", "mixsweep run study") as lease:
        reports.append(train_run(_parameters(store, lease)))
    (said,) = (warning for report in reports for warning in report["warnings"])
    assert key in said
    assert "quarantine" in said
    assert reports[-1]["failure"] is None
    assert [row["epoch"] for report in reports for row in report["rows"]] == [0, 1, 2, 3]


def test_a_node_without_the_store_reports_an_unshared_store(
    tmp_path: Path, reports: list[Report]
) -> None:
    there, here = (Store(str(tmp_path / name)) for name in ("there", "here"))
    with Lease.acquire(there, "study", "mixsweep run study") as lease:
        last = train_run(_parameters(here, lease))
    assert (last["failure"]["kind"], last["done"], reports) == ("unshared", True, [])


def _parameters(store: Store, lease: Lease) -> dict[str, Any]:
    assignment = Assignment(config=BASE, store=store.url)
    return {
        "run_key": "key",
        "assignment": assignment,
        "study": "study",
        "driver": lease.holder,
        "avoided": frozenset(),
        "sick": frozenset(),
        "is_last": False,
    }


@pytest.mark.usefixtures("reports")
def test_a_node_waits_for_a_lease_that_the_file_system_shows_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "train", _error)
    there, here = tmp_path / "there", tmp_path / "here"
    with Lease.acquire(Store(str(there)), "study", "mixsweep run study") as written:
        monkeypatch.setattr(trainable.time, "sleep", lambda _: there.rename(here))
        last = train_run(_parameters(Store(str(here)), written))
        here.rename(there)
    assert last["failure"]["kind"] == "failed", "it came as far as its error"
