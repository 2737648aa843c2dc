"""RayCluster: what its processes are given, and how it is ended aside."""

import gc
import os
import subprocess
import threading
from contextlib import ExitStack

import pytest

from sweeps.running.ray_cluster import _environment, close_aside


@pytest.mark.parametrize("before", [None, "4"])
def test_processes_started_within_have_the_variables_and_others_have_not(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen_by_a_process() -> str:
        shown = subprocess.run(["/bin/sh", "-c", "echo $OMP_NUM_THREADS"], stdout=-1, check=True)
        return shown.stdout.decode().strip()

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if before is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", before)
    with _environment(OMP_NUM_THREADS="1"):
        assert seen_by_a_process() == "1"
    assert os.environ.get("OMP_NUM_THREADS") == before
    assert seen_by_a_process() == (before or "")


def test_what_holds_actors_is_let_go_before_ray_is_ended_and_nothing_meanwhile() -> None:
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
