"""RayCluster: settings of its processes, and how they are ended in the background."""

import gc
import os
import signal
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
        starts.append((given["address"], given["num_cpus"], os.environ["OMP_NUM_THREADS"]))
        raise RuntimeError("no room")

    monkeypatch.setattr(ray_cluster.ray, "init", init)
    monkeypatch.setattr(ray_cluster, "end_children", lambda: None)
    with pytest.raises(HeadLostError) as raised, cluster(Placement(), 1, tmp_path):
        pass
    assert "(no room; raylet.out: No space for sockets)" in str(raised.value)
    assert "--engine inline" in str(raised.value)
    assert starts == [("local", 1, "1")] * 2, "one retry"
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
