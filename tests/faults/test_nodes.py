"""Clusters of several nodes: where runs go, and nodes that are lost or join."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import CommandLine
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task
from tests.faults.nodes import Nodes, gpu_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

MANY_RUNS = str(Path(__file__).with_name("many-runs.yaml"))


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with Nodes.started() as nodes:
        yield nodes


def test_the_runs_of_a_lost_node_move_to_another(
    command_line: Callable[..., CommandLine], undisturbed: CommandLine, nodes: Nodes
) -> None:
    doomed, _ = [nodes.add(cpus=1) for _ in range(2)]
    mixsweep = command_line(**nodes.environment)
    with Launch(mixsweep, TWO_LAWS, slots=None) as launch:
        for run in TWO_LAWS.study.runs()[:2]:
            launch.stage(run, epochs=5)
        acknowledged = TWO_LAWS.acknowledged(launch.store)
        nodes.kill(doomed)
        launch.end(0)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged)
    seen = {gpu_of(result)[1] for result in TWO_LAWS.results(launch.store)}
    assert seen == {""}, "a run without a GPU can see some"


@pytest.mark.long
@pytest.mark.parametrize(("share", "seeds"), [("1", 4), ("0.5", 4), ("0.25", 4)])
def test_runs_fill_the_gpus_of_every_node_evenly(
    command_line: Callable[..., CommandLine], nodes: Nodes, share: str, seeds: int
) -> None:
    for _ in range(2):
        nodes.add(cpus=8, gpus=2)
    mixsweep = command_line(**nodes.environment)
    task = Task(MANY_RUNS, (f"seeds={seeds}", "base.epochs=100"))
    options = ("--gpus-per-run", share, "--device", "cpu")
    with Launch(mixsweep, task, *options, slots=None) as launch:
        launch.end(0)
    used = Counter(gpu_of(result) for result in task.results(launch.store))
    assert len(used) == 4, f"a GPU was left idle: {used}"
    assert {gpus for _, gpus in used} == {"0", "1"}


@pytest.mark.long
def test_a_node_that_joins_later_is_used_as_far_as_its_cpus_go(
    command_line: Callable[..., CommandLine], nodes: Nodes
) -> None:
    nodes.add(cpus=2, gpus=1)
    mixsweep = command_line(**nodes.environment)
    task = Task(MANY_RUNS, ("seeds=6", "base.epochs=100"))
    with Launch(mixsweep, task, "--device", "cpu", slots=None) as launch:
        launch.stage(task.study.runs()[0])
        late = nodes.add(cpus=1, gpus=4)
        launch.end(0)
    used = {gpu_of(result) for result in task.results(launch.store)}
    assert {gpus for node, gpus in used if node == late.node_id} == {"0"}
    assert len(used) == 2


@pytest.mark.long
def test_two_studies_share_a_cluster_a_store_and_a_home(
    command_line: Callable[..., CommandLine], nodes: Nodes
) -> None:
    nodes.add(cpus=2)
    mixsweep = command_line(**nodes.environment)
    tasks = [Task(MANY_RUNS, (f"study={name}", "seeds=2")) for name in ("one", "other")]
    with (
        Launch(mixsweep, tasks[0], slots=1) as one,
        Launch(mixsweep, tasks[1], slots=1) as other,
    ):
        one.end(0)
        other.end(0)
    for task in tasks:
        results = task.results(one.store)
        assert [result.outcome for result in results] == ["complete"] * 6
    assert len(list((one.store / "stages").rglob("*.json"))) == 6, "a common run is stored twice"
