"""A node of a cluster that is gone from one moment to the next."""

from collections.abc import Callable, Iterator

import pytest
from ray.cluster_utils import Cluster

from tests.conftest import CommandLine
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

MEMORY = 100 * 2**20


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": MEMORY}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    yield cluster
    cluster.shutdown()


def test_the_runs_of_a_lost_node_move_to_another(
    command_line: Callable[..., CommandLine], undisturbed: CommandLine, cluster: Cluster
) -> None:
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
    mixsweep = command_line(RAY_ADDRESS=cluster.address)
    with Launch(mixsweep, TWO_LAWS) as launch:
        for run in TWO_LAWS.study.runs()[:2]:
            launch.stage(run, epochs=5)
        acknowledged = TWO_LAWS.acknowledged(launch.store)
        cluster.remove_node(nodes[0], allow_graceful=False)
        launch.end(0)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged)
