"""Launch: its output and files if there is nothing to train, or if its cluster does not start."""

import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from sweeps.running import launch
from sweeps.running.head import HeadLostError
from sweeps.running.launch import growth_in
from sweeps.running.placement import Placement
from sweeps.searching.sources import RunSource
from sweeps.state.stages import plan_study
from sweeps.study.study import Study
from tests.filled import put_epochs
from tests.sweeps.tracking.test_tracker import tracker_of


def train(study: Study, store: Store, home: Path) -> Any:
    """Train the missing runs of a study, as far as possible."""
    with Lease.acquire(store, study.name, "run") as lease:
        source = RunSource(study, plan_study(study, store).pending)
        return launch.train(source, store, tracker_of(study, home), lease, Placement())


def test_no_cluster_is_started_if_all_runs_are_stored(
    study: Study, home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(launch, "cluster")
    for run in study.runs():
        put_epochs(store, run, run.config.epochs)
    assert [result.outcome for result in train(study, store, home)] == ["complete"] * 4


def test_a_cluster_that_does_not_start_is_reported_and_leaves_no_folder(
    study: Study, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []

    def none(placement: Placement, runs: int, folder: Path) -> NoReturn:
        assert runs == 4
        assert folder.is_dir()
        seen.append(folder)
        raise HeadLostError("Ray did not start")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(launch, "cluster", none)
    store = Store(str(tmp_path / "store"))
    with pytest.raises(HeadLostError, match="did not start"):
        train(study, store, home)
    (folder,) = seen
    assert not folder.exists()


TEXT = """======== Autoscaler status: 2026-11-25 04:44:24.406180 ========
Node status
---------------------------------------------------------------
Active:
{active}
Idle:
{idle}
Pending:
 b30660a4-14c8-482a-8d16-2794d506d743: gpu,
Recent failures:
 (no failures)

Resources
---------------------------------------------------------------
Total Usage:
 0.0/1.0 CPU
 0B/11.45GiB memory
"""
NODE = "node_f172147d0046fc73064927e78b3a981b6355467827af77f6eb32b8f4"


@pytest.mark.parametrize(
    ("active", "idle", "growth"),
    [
        (f" 1 {NODE}", "", "by hand"),
        (f" 1 {NODE}\n 1 {NODE}", f" 1 {NODE}", "by hand"),
        (" (no active nodes)", " 1 head", "autoscaler"),
        (" 2 gpu", f" 1 {NODE}", "autoscaler"),
        (" 1 node_gpu", "", "autoscaler"),
        ("", "", "autoscaler"),
    ],
)
def test_growth_is_by_hand_if_nodes_have_no_node_type(active: str, idle: str, growth: str) -> None:
    assert growth_in(TEXT.format(active=active, idle=idle)) == growth
    assert growth_in("") == "autoscaler"
