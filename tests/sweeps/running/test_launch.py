"""What a launch gives to Tune, without a cluster."""

import gc
import os
import subprocess
import threading
from contextlib import ExitStack
from typing import Any

import pytest
from ray import cloudpickle
from ray.tune.trainable.function_trainable import wrap_function

from sweeps.running.launch import _close_aside, _environment, _named
from sweeps.running.trainable import train_run


def test_the_actors_of_a_study_have_its_name_in_what_ray_lists() -> None:
    named = _named(train_run, "digits")
    wrapped = wrap_function(named)
    assert repr(object.__new__(wrapped)) == "mixsweep digits"


def test_a_named_function_does_in_a_worker_what_it_did_here() -> None:
    seen: list[dict[str, Any]] = []
    sent = cloudpickle.loads(cloudpickle.dumps(_named(print, "digits")))
    assert sent.__name__ == "mixsweep digits"
    _named(seen.append, "digits")({"run_key": "a"})
    assert seen == [{"run_key": "a"}]


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
        _close_aside(things.pop_all())
    for thread in threading.enumerate():
        if thread.name == "ending Ray":
            thread.join()
    assert seen == ["let go", ("closed", False)]
    assert gc.isenabled()
