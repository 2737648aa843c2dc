"""Nodes: a cluster of several real raylets on this machine, whose GPUs exist only as numbers.

All nodes share the disk and the loopback of this machine, and a run on a GPU computes on a CPU
(`--device cpu`). Tests check where runs are placed and what they can see, not CUDA.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ray.cluster_utils import Cluster

from sweeps.state.results import RunResult

MANY_RUNS = str(Path(__file__).with_name("many-runs.yaml"))
"""Study of short runs, for clusters of several nodes."""

_MEMORY = 80 * 2**20
_LOOPBACK = "127.0.0.1"
_NOTHING: Mapping[str, str] = MappingProxyType({})
_PASSED_ON = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")

Gpu = tuple[str, str]
"""Node id, and the value of CUDA_VISIBLE_DEVICES there."""


class Nodes:
    """A head node without slots, and the nodes added to it; `started` ends them all."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @classmethod
    @contextmanager
    def started(cls) -> Iterator["Nodes"]:
        """Start the head."""
        head = {"num_cpus": 0, "num_gpus": 0, "include_dashboard": False}
        common = {"object_store_memory": _MEMORY, "node_ip_address": _LOOPBACK}
        cluster = Cluster(initialize_head=True, head_node_args=head | common)
        try:
            yield cls(cluster)
        finally:
            cluster.shutdown()

    @property
    def environment(self) -> dict[str, str]:
        """Environment that a command needs to join the cluster."""
        secrets = {name: os.environ[name] for name in _PASSED_ON}
        return {"RAY_ADDRESS": self._cluster.address, **secrets}

    def add(
        self, *, cpus: int, gpus: int = 0, environment: Mapping[str, str] = _NOTHING, **given: Any
    ) -> Any:
        """Start a node with its own environment variables, and return it once it has joined."""
        return self._cluster.add_node(
            num_cpus=cpus,
            num_gpus=gpus,
            object_store_memory=_MEMORY,
            node_ip_address=_LOOPBACK,
            env_vars=dict(environment),
            **given,
        )

    def kill(self, node: Any) -> None:
        """Kill a node and all its processes at once."""
        self._cluster.remove_node(node, allow_graceful=False)


def gpu_of(result: RunResult) -> Gpu:
    """Return the GPU on which the last stored epoch of a run was trained."""
    return result.stage.environment["node"], result.stage.environment["gpus"]
