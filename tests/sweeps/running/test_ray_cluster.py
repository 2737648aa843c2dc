"""RayCluster: settings of its processes, and how they are ended in the background."""

import gc
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from sweeps.running import ray_cluster
from sweeps.running.head import HeadLostError
from sweeps.running.placement import Placement
from sweeps.running.ray_cluster import close_aside, cluster


def test_a_failed_start_of_ray_is_retried_once_and_names_its_logged_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[object] = []

    def init(**given: object) -> None:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))  # as Ray does
        logs = Path(str(given["_temp_dir"]), "session_2026", "logs")
        logs.mkdir(parents=True, exist_ok=True)
        (logs / "gcs_server.out").write_text("[2026-11-29 00:01:10,3 I 7 7] (gcs_server) started\n")
        (logs / "raylet.out").write_text(
            "[2026-11-29 00:01:10,280 E 27482 27516] (raylet) main.cc:83: No space for sockets\n"
            "[2026-11-29 00:01:10,285 I 27482 27482] (raylet) stats.h:176: has shut down.\n"
        )
        starts.append(given)
        raise RuntimeError("no room")

    monkeypatch.setattr(ray_cluster.ray, "init", init)
    monkeypatch.setattr(ray_cluster, "end_children", lambda: None)
    with pytest.raises(HeadLostError) as raised, cluster(Placement(), 1, tmp_path):
        pass
    assert "(no room; raylet.out: No space for sockets)" in str(raised.value)
    assert "--engine inline" in str(raised.value)
    assert len(starts) == 2, "one retry"
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_references_to_actors_are_released_before_ray_is_shut_down() -> None:
    seen: list[object] = []

    class Handle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            seen.append("let go")

    Handle()
    with ExitStack() as things:
        things.callback(lambda: seen.append(("closed", gc.isenabled())))
        close_aside(things.pop_all())
    for thread in threading.enumerate():
        if thread.name == "ending Ray":
            thread.join()
    assert seen == ["let go", ("closed", False)]
    assert gc.isenabled()


_OWN_CLUSTER = """
import os, psutil
from sweeps.running.placement import Placement
from sweeps.running.ray_cluster import cluster, nodes
from sweeps.machine.scratch import scratch

with scratch() as folder:
    with cluster(Placement(slots=2), 5, folder):
        import ray

        @ray.remote(num_cpus=1)
        def threads():
            return os.environ["OMP_NUM_THREADS"]

        print(ray.get(threads.remote()), [node.cpus for node in nodes()])
        listening = {
            connection.laddr.ip.removeprefix('::ffff:')
            for process in psutil.Process().children(recursive=True)
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
        print(sorted(listening))
print(psutil.Process().children(recursive=True))
"""


def test_an_own_cluster_listens_on_the_loopback_and_leaves_no_process() -> None:
    given = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    said = subprocess.run(
        [sys.executable, "-c", _OWN_CLUSTER], env=given, check=True, capture_output=True, text=True
    )
    assert said.stdout.splitlines() == ["1 [2.0]", "['127.0.0.1']", "[]"]
