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
def test_nodes_of_different_sizes_run_as_many_runs_as_their_gpus_and_cpus_allow(
    command_line: CommandLines, nodes: Nodes
) -> None:
    two, four, none = (nodes.add(cpus=4, gpus=gpus).node_id for gpus in (2, 4, 0))
    mixsweep = command_line(**nodes.environment)
    on_gpus = Task(MANY_RUNS, ("study=on-gpus", "seeds=6", "base.epochs=100"))
    with Launch(mixsweep, on_gpus, "--device", "cpu", slots=None) as launch:
        launch.end(0)
    used = {gpu_of(result) for result in on_gpus.results(launch.store)}
    assert used == {(two, "0"), (two, "1"), *((four, str(gpu)) for gpu in range(4))}
    on_cpus = Task(MANY_RUNS, ("study=on-cpus", "seeds=[6, 7, 8, 9, 10, 11]", "base.epochs=100"))
    with Launch(mixsweep, on_cpus, "--gpus-per-run", "0", slots=None) as launch:
        launch.end(0)
    used = {gpu_of(result) for result in on_cpus.results(launch.store)}
    assert used == {(two, ""), (four, ""), (none, "")}


@pytest.mark.long
def test_all_runs_train_on_nodes_of_the_requested_kind(
    command_line: CommandLines, nodes: Nodes
) -> None:
    typed = nodes.add(cpus=4, gpus=1, resources={"accelerator_type:A100": 1}).node_id
    named = nodes.add(cpus=4, gpus=4, resources={"fast": 1}, labels={"zone": "b"}).node_id
    mixsweep = command_line(**nodes.environment)
    for kind, node, seeds in (("A100", typed, 1), ("fast", named, 2), ("zone=b", named, 3)):
        task = Task(MANY_RUNS, (f"study={node[:8]}-{seeds}", f"seeds=[{seeds}]"))
        with Launch(mixsweep, task, "--device", f"{kind}:cpu", slots=None) as launch:
            launch.end(0)
        assert {gpu_of(result)[0] for result in task.results(launch.store)} == {node}
    absent = Task(MANY_RUNS, ("seeds=[9]",))
    with Launch(mixsweep, absent, "--device", "H200:cpu", slots=None) as launch:
        assert "accelerator types here: A100" in launch.end(2).stderr


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
