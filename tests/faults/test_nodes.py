"""Clusters of several nodes: a store that one lacks, a lost node, and slots for a second study."""

import dataclasses
from pathlib import Path

import pytest

from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task, wait_for
from tests.faults.nodes import MANY_RUNS, Nodes, gpu_of
from tests.soak.epochs_log import EpochsLog

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]


@pytest.mark.long
def test_a_node_that_sees_another_store_is_refused(
    command_line: CommandLines, nodes: Nodes
) -> None:
    nodes.add(cpus=1)
    mixsweep = command_line(**nodes.environment)
    task = Task(MANY_RUNS, ("seeds=2",))
    store = mixsweep.home / "store"
    store.mkdir(parents=True)
    on_a_disk_of_its_own = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
    prefix = ("unshare", "--mount", "sh", "-c", on_a_disk_of_its_own, str(store))
    with Launch(dataclasses.replace(mixsweep, prefix=prefix), task, slots=None) as launch:
        said = launch.end(2).stderr
    assert f"every node must see the store '{store}', but the node" in said
    assert "give --store a folder that all nodes share, or a bucket" in said
    assert "Traceback" not in said
    assert not list(store.iterdir()), "the node trained into a folder that the driver never reads"


@pytest.mark.long
def test_a_mixed_cluster_that_loses_a_node_ends_all_runs_and_trains_none_twice(
    command_line: CommandLines, undisturbed: CommandLine, nodes: Nodes
) -> None:
    """A head with CPUs alone, a node with one GPU, and a node with four."""
    one, four = (nodes.add(cpus=gpus, gpus=gpus) for gpus in (1, 4))
    mixsweep = command_line(**nodes.environment)
    with Launch(mixsweep, TWO_LAWS, "--device", "cpu", slots=None) as launch:
        for run in TWO_LAWS.study.runs()[:2]:
            launch.stage(run, epochs=5)
        acknowledged = TWO_LAWS.acknowledged(launch.store)
        nodes.kill(four)
        launch.end(0)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged)
    last = {gpu_of(result) for result in TWO_LAWS.results(launch.store)}
    assert (one.node_id, "0") in last


def test_a_study_on_a_full_cluster_soon_gets_slots_of_the_study_that_holds_them(
    command_line: CommandLines, nodes: Nodes, tmp_path: Path
) -> None:
    log = EpochsLog(folder=tmp_path)
    nodes.add(cpus=2, environment=log.variables("cluster", nap=0.5))
    mixsweep = command_line(**nodes.environment)
    short = ("base.epochs=12", "base.eval_every=12")
    one, other = (
        Task(MANY_RUNS, (f"study={name}", f"seeds={seeds}", *short))
        for name, seeds in (("one", [*range(8)]), ("other", [0, 20]))
    )
    with Launch(mixsweep, one, slots=None) as holder:
        wait_for(lambda: _num_ended(one, holder) >= 3)
        with Launch(mixsweep, other, slots=None) as waiting:
            wait_for(lambda: _num_ended(other, waiting) > 3)
            before = _num_ended(one, holder)
            waiting.end(0)
        holder.end(0)
    assert before < 20, f"the second study waited for {before} of 24 runs"
    assert (_num_ended(one, holder), _num_ended(other, holder)) == (24, 6)
    assert log.count().twice == ()


def _num_ended(task: Task, launch: Launch) -> int:
    return sum(result.outcome == "complete" for result in task.results(launch.store))
