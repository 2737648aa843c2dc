"""A launch with Ray from Python leaves the caller's process, children, handlers and Ray alone."""

import io
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from mlflow import MlflowClient

import mixsweep
from mixsweep import apart
from mixsweep.apart import Order, launch_apart
from mixsweep.launching.launch import LaunchOptions
from mixsweep.request import RefusedError
from mixup_core.store.checkpoints import Store
from sweeps.leasing.holders import Holder, StudyBusyError
from sweeps.machine.home import Home
from sweeps.reading.study_file import StudyError
from sweeps.running.head import HeadLostError
from sweeps.state.ledger import launches
from tests.interpreters import run_python
from tests.mixsweep.test_mixsweep import STUDY as TWO_ARMS

STUDY: dict[str, Any] = {**TWO_ARMS, "study": "apart", "arms": {"erm": {"mix.law": "erm"}}}
del STUDY["claims"]

CALLER = """
import io, os, signal, subprocess, sys, threading, time
import psutil
import ray
import mixsweep

STUDY, HOME, WAIT = {study!r}, {home!r}, {wait}
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
two = ray.put(2)
child = subprocess.Popen(["sleep", "600"])
over = threading.Event()
threading.Thread(target=over.wait, daemon=True).start()


class Console(io.StringIO):
    def write(self, text):
        if "seed 0 starts" in text:
            os.kill(os.getpid(), signal.SIGINT)
        return super().write(text)


def facts():
    alive = sorted(p.pid for p in psutil.Process().children(recursive=True))
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    return alive, [signal.getsignal(n) for n in numbers], dict(os.environ), os.getcwd(), sys.stdout


before, stderr, sys.stderr = facts(), sys.stderr, Console()
try:
    long = {{**STUDY, "base": {{**STUDY["base"], "epochs": 3000}}}}
    mixsweep.run(long, home=HOME, engine="ray", slots=1)
except KeyboardInterrupt:
    print("caught")
printed, sys.stderr = sys.stderr.getvalue(), stderr
assert "interrupted" in printed, printed
assert facts() == before
time.sleep(WAIT)
assert facts() == before
assert ray.get(two) == 2

if WAIT:
    results, epochs = [], []
    tell = lambda *told: epochs.append((os.getpid(), *told))
    call = lambda: results.append(
        mixsweep.run(STUDY, home=HOME, engine="ray", slots=1, on_epoch=tell)
    )
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert list(results[0].runs["outcome"]) == ["complete"]
    assert [told[:4] for told in epochs] == [(os.getpid(), "erm", 0, 1)]
    assert epochs[0][4]["test/error"] == results[0].epochs["test/error"][0]
    assert facts() == before
over.set()
child.kill()
print("alive")
"""


@pytest.mark.slow
@pytest.mark.parametrize("wait", [0, pytest.param(70, marks=pytest.mark.long)])
def test_an_interrupted_launch_with_ray_leaves_its_caller_alone(tmp_path: Path, wait: int) -> None:
    program = CALLER.format(study=STUDY, home=str(tmp_path / "runs"), wait=wait)
    done = run_python(program, timeout=200)
    assert (done.returncode, done.stdout) == (0, "caught\nalive\n"), done.stderr


def test_a_study_is_trained_inline_outside_the_main_thread_by_a_user_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", Mock(side_effect=KeyError("uid not found")))
    found: list[str] = []

    def call() -> None:
        found.extend(mixsweep.run(STUDY, home=tmp_path / "runs").runs["outcome"])

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert found == ["complete"]


def test_a_function_of_the_caller_gets_each_epoch_once_and_can_end_the_launch(
    tmp_path: Path,
) -> None:
    three = {**STUDY, "base": {**STUDY["base"], "epochs": 3}}
    told: list[tuple[str, int, int]] = []

    def stop(arm: str, seed: int, epoch: int, metrics: Mapping[str, float]) -> None:
        told.append((arm, seed, epoch))
        with pytest.raises(TypeError, match="does not support item assignment"):
            metrics["test/error"] = 0.0  # type: ignore[index]
        raise LookupError(f"enough after {epoch}")

    mixsweep.run(three, home=tmp_path, on_epoch=lambda *each: told.append(each[:3]))
    assert told == [("erm", 0, epoch) for epoch in (1, 2, 3)]
    mixsweep.run(three, home=tmp_path, on_epoch=stop)  # nothing is trained, so nothing is told
    with pytest.raises(LookupError, match="enough after 1"):
        mixsweep.run(three, "seeds=[5, 6]", home=tmp_path, on_epoch=stop)
    assert told[3:] == [("erm", 5, 1)]
    for thread in threading.enumerate():
        if thread.name == "tracker":
            thread.join(10)
            assert not thread.is_alive(), "its last writes are those of this launch"
    client = MlflowClient(Home(folder=tmp_path).tracking_uri)
    found = client.search_runs([client.get_experiment_by_name("apart").experiment_id])
    assert {run.info.status for run in found} == {"FINISHED", "KILLED"}
    results = mixsweep.run(three, "seeds=[5, 6]", home=tmp_path)
    assert list(results.runs["outcome"]) == ["complete"] * 2


def test_the_list_of_studies_has_the_points_of_a_search_that_was_interrupted(
    tmp_path: Path,
) -> None:
    data = {"name": "digits", "num_train": 64, "val_size": 64}
    space = {"batch_size": {"int": [8, 32]}}
    search = {"space": space, "points": 2, "objective": "val/error"}
    sought = {**STUDY, "base": {**STUDY["base"], "data": data}, "seeds": 2, "search": search}

    def stop(arm: str, *_: object) -> None:
        if arm != "erm":
            raise LookupError(arm)

    with pytest.raises(LookupError):
        mixsweep.run(sought, home=tmp_path, on_epoch=stop)
    (launch,) = launches(store := Store(str(tmp_path / "store")))
    assert (launch.num_finished(store.keys()), len(launch.ends)) == (3, 4)


@pytest.mark.parametrize(
    "error",
    [
        StudyBusyError("apart", Holder.here(3, "mixsweep run")),
        StudyError(["a: b"] * 40, ["c"] * 40),
    ],
)
def test_an_error_of_the_other_process_is_raised_with_its_type_and_content(
    error: Exception,
) -> None:
    content = apart._pickled(error)
    read = apart._answered(io.BytesIO(content), None)
    assert (type(read), str(read), vars(read)) == (type(error), str(error), vars(error))
    assert apart._answered(io.BytesIO(content[:-9]), None) is None


@pytest.mark.slow
def test_a_launch_whose_process_the_watchdog_has_ended_raises_its_last_message(
    tmp_path: Path,
) -> None:
    plugin = tmp_path / "ending.py"
    plugin.write_text(
        "import sweeps.machine.watchdog as watchdog\n"
        "watchdog.end_by_force('Ray did not start', watchdog.LOST)\n"
    )
    options = LaunchOptions(engine="ray")
    home = Home(folder=tmp_path / "runs")
    order = Order(study=STUDY, overrides=(), plugins=(str(plugin),), home=home, options=options)
    with pytest.raises(HeadLostError, match=r"^Ray did not start$"):
        launch_apart(order)


@pytest.mark.slow
def test_a_refusal_in_the_process_of_the_launch_is_raised_to_the_caller(tmp_path: Path) -> None:
    photos = {**STUDY, "base": {"data": {"name": "fashion-mnist"}, "epochs": 1, "batch_size": 50}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))
        with pytest.raises(RefusedError, match="mixsweep data fetch fashion-mnist"):
            mixsweep.run(photos, home=tmp_path / "runs", engine="ray")
