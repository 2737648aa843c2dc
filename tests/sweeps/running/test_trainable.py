"""What a trial tells the driver, and what it refuses, without Ray."""

import math
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mixup_core.images.config import DataConfig, Mlp, TrainConfig
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from sweeps.running.storing import Assignment
from sweeps.running.trainable import UnsharedStoreError, _Driver, _require_same_store, _train

BASE = TrainConfig(
    data=DataConfig(name="digits", num_train=100),
    model=Mlp(hidden=(8,)),
    epochs=4,
    batch_size=50,
)


class _Heard(_Driver):
    """A driver that is not there: what a run tells it."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[tuple[int, list[int]]] = []

    def report(self, *, epochs: int = 0, rows: Sequence[dict[str, Any]] = (), **_: Any) -> None:
        self.reports.append((epochs, [row["epoch"] for row in rows]))


@pytest.mark.parametrize(
    ("report_every", "heard"),
    [
        (math.inf, [(2, [0, 1]), (4, [2, 3])]),
        (0.0, [(1, [0]), (2, [1]), (3, [2]), (4, [3])]),
    ],
)
def test_a_quiet_run_still_tells_of_the_epochs_that_others_wait_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    report_every: float,
    heard: list[tuple[int, list[int]]],
) -> None:
    monkeypatch.setattr("sweeps.running.storing.STORE_AT_LEAST_EVERY", 0.0)
    monkeypatch.setattr("sweeps.running.trainable._place", dict)  # only Ray knows where this is
    assignment = Assignment(
        config=BASE, keep=frozenset({2}), keep_final_state=False, store=str(tmp_path), teacher=None,
        data_root=str(tmp_path), on_gpu=False, report_every=report_every,
    )  # fmt: skip
    driver = _Heard()
    _train(assignment, driver)
    assert driver.reports == heard
    again = _Heard()
    _train(assignment, again)
    assert again.reports == [(4, [0, 1, 2, 3])]


def test_a_store_without_the_lease_of_the_driver_is_refused(tmp_path: Path) -> None:
    there, here = (Store(str(tmp_path / name)) for name in ("there", "here"))
    with Lease.acquire(there, "study", "mixsweep run study") as lease:
        _require_same_store(there.url, "study", lease.holder)
        with pytest.raises(UnsharedStoreError, match="found the lease of: None"):
            _require_same_store(here.url, "study", lease.holder)
        Lease.acquire(here, "study", "another day").release()
        with pytest.raises(UnsharedStoreError, match=f"found the lease of: pid {os.getpid()} on"):
            _require_same_store(here.url, "study", lease.holder)


def test_a_lease_that_a_file_system_shows_late_is_waited_for(tmp_path: Path) -> None:
    written = Lease.acquire(Store(str(tmp_path / "there")), "study", "mixsweep run study")
    late = threading.Timer(0.5, (tmp_path / "there").rename, [tmp_path / "here"])
    late.start()
    try:
        _require_same_store(str(tmp_path / "here"), "study", written.holder)
    finally:
        late.join()
        (tmp_path / "here").rename(tmp_path / "there")
        written.release()
