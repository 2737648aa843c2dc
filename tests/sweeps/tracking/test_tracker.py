import os
import pickle
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Experiment

from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from sweeps.machine.home import Home
from sweeps.study.study import Study
from sweeps.tracking.study_log import StudyLog
from sweeps.tracking.tracker import Tracker
from tests.sweeps.tracked import (
    epoch_of,
    log_of,
    result_of,
    results_of,
    runs_of,
    summarise,
)
from tests.tracked_runs import read_runs

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"
)


def tracker_of(study: Study, home: Path) -> Tracker:
    return Tracker(log_of(study, home))


def wait_until(happened: Callable[[], object]) -> None:
    until = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.01)


def finished(study: Study, client: MlflowClient) -> set[str]:
    seeds = runs_of(study, client, "seed")
    return {name for name, run in seeds.items() if run.info.status == "FINISHED"}


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


@contextmanager
def mlflow_server(folder: Path, port: int) -> Iterator[None]:
    options = ["--backend-store-uri", f"sqlite:///{folder}/server.db", "--port", str(port)]
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "server", *options, "--workers", "1"],
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=10)


def closed(tracker: Tracker, *arguments: object, **named: float) -> bool:
    """Close a tracker; return True if MLflow has everything."""
    tracker.close(*arguments, **named)  # type: ignore[arg-type]
    return tracker.trouble is None


def test_an_arm_is_summarised_whenever_a_seed_has_ended(
    study: Study, home: Path, client: MlflowClient
) -> None:
    study = replace(study, seeds=(0, 1, 2))
    tracker = Tracker(log_of(study, home))
    tracker.start([])
    results = [result_of(run, 3) for run in study.runs_of("erm")]
    for count, result in enumerate(results, 1):
        tracker.reconcile([result])
        wait_until(
            lambda count=count: (
                (arm := runs_of(study, client, "config").get("erm erm"))  # type: ignore[misc]
                and arm.data.tags.get("n") == f"{count}/3"
            )
        )
    assert closed(tracker, [])
    arm = runs_of(study, client, "config")["erm erm"]
    errors = [result.records[-1].metrics["test/error"] for result in results]
    assert arm.data.metrics["test/error_mean"] == statistics.fmean(errors)
    assert (arm.info.status, arm.data.tags["outcome"]) == ("FINISHED", "complete")


def test_modules_needed_at_the_start_are_imported_before_the_first_write(
    study: Study, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "needed_at_once.py"
    module.write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    was_there: list[bool] = []

    def may_write() -> bool:
        was_there.append(module.stem in sys.modules)
        return True

    tracker = Tracker(log_of(study, home), may_write=may_write)
    tracker.load_ahead(module.stem, at_once=True)
    tracker.start(results_of(study, *[3] * len(study.runs())))
    assert closed(tracker, [])
    assert all(was_there)
    assert len(was_there) > len(study.runs())
    del sys.modules[module.stem]


def test_stored_results_are_written_after_new_results(
    study: Study, home: Path, client: MlflowClient
) -> None:
    study = replace(study, seeds=tuple(range(10)))
    writes = threading.Semaphore(0)
    tracker = Tracker(log_of(study, home), may_write=lambda: writes.acquire(blocking=False))
    tracker.start(results_of(study, *[1] * 20))
    last = study.runs()[-1]
    tracker.post(last, [epoch_of(last, 1)])
    tracker.reconcile([result_of(last, 3)])
    writes.release(5)
    wait_until(lambda: finished(study, client))
    assert finished(study, client) == {"midpoint midpoint seed=9"}
    assert len(runs_of(study, client, "seed")) <= 5
    writes.release(1000)
    assert closed(tracker, [])
    assert len(runs_of(study, client, "seed")) == 20


def test_a_network_posted_before_its_run_is_written_after_the_run(
    study: Study, home: Path, client: MlflowClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A network of a run that is not in MLflow yet is left out; other errors are reported.

    The first run is being written when MLflow opens, so the network is that of the last run.
    """
    is_open = threading.Event()
    tracker = Tracker(log_of(study, home), may_write=is_open.is_set)
    results = results_of(study, 3, 3, 3, 3)
    tracker.start(results)
    wait_until(lambda: caplog.messages)
    tracker.log_model(study.runs()[-1], b"no state")
    is_open.set()
    assert closed(tracker, results)
    assert len(runs_of(study, client, "seed")) == 4
    assert "no model of midpoint seed 1, for the network" in caplog.text


def test_an_item_that_mlflow_refuses_is_dropped_with_a_warning(
    study: Study, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = tracker_of(study, home)
    tracker.start([])
    run, other, *_ = study.runs()
    _, facts = epoch_of(run, 0)
    tracker.post(run, [(EpochRecord(epoch=0, metrics={"100%": 0.0}), facts)])
    tracker.post(other, [epoch_of(other, 0)])
    assert not closed(tracker, []), "what was dropped did not arrive"
    (warning,) = caplog.messages
    assert warning.startswith("MLflow refuses a write, which is dropped")
    tracked = {run.run_key: run for run in read_runs(Home(folder=home).tracking_uri, study.name)}
    assert tracked[other.key].records == result_of(other, 1).records
    assert (tracked[run.key].records, tracked[run.key].outcome) == ((), "partial")


@pytest.mark.parametrize("is_mlflow", [True, False])
def test_a_final_refusal_is_reported_once_and_ends_the_requests(
    study: Study,
    home: Path,
    client: MlflowClient,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    is_mlflow: bool,
) -> None:
    experiment = client.create_experiment(study.name)
    client.create_run(experiment)
    find, requests = MlflowClient.get_experiment_by_name, []

    def counted(self: MlflowClient, name: str) -> Experiment | None:
        requests.append(name)
        return find(self, name if is_mlflow else "Default")

    monkeypatch.setattr(MlflowClient, "get_experiment_by_name", counted)
    tracker = tracker_of(study, home)
    tracker.start(results_of(study, 1, 1, 1, 1))
    wait_until(lambda: tracker.trouble)
    tracker.post(study.runs()[0], [epoch_of(study.runs()[0], 1)])
    tracker.log_report(home, "a note")
    assert not closed(tracker, results_of(study, 3, 3, 3, 3))
    said = "only runs of another program" if is_mlflow else "is not MLflow"
    assert said in (tracker.trouble or "")
    (warning,) = caplog.messages
    assert warning.startswith("nothing more is written to MLflow; the store keeps the data: ")
    assert said in warning
    assert requests == [study.name]
    assert tracker.was_refused
    assert tracker.num_waiting == 0


def test_a_tracker_writes_posted_epochs_and_leaves_no_run_marked_running(
    study: Study, home: Path, client: MlflowClient
) -> None:
    run, other, *_ = study.runs()
    tracker = tracker_of(study, home)
    tracker.start(results_of(study, 1, 0, 0, 0))
    tracker.post(run, [])
    tracker.post(run, [epoch_of(run, 1)])
    tracker.post(other, [epoch_of(other, 0), epoch_of(other, 1)])
    tracker.post(run, [epoch_of(run, 2)])
    results = results_of(study, 3, 2, 0, 0)
    assert closed(tracker, results)
    tracked = read_runs(Home(folder=home).tracking_uri, study.name)
    assert [run.records for run in tracked] == [result.records for result in results[:2]]
    everything = {**runs_of(study, client, "seed"), **runs_of(study, client, "config")}
    assert {run.info.status for run in everything.values()} == {"FINISHED", "KILLED"}


@pytest.mark.parametrize("written", [1, 2, 5])
def test_an_interrupt_during_the_final_update_leaves_no_run_marked_running(
    study: Study, home: Path, client: MlflowClient, written: int
) -> None:
    """A run that MLflow shows as running gets the state that the store has."""
    study = replace(study, seeds=tuple(range(10)))
    writes = threading.Semaphore(0)
    tracker = Tracker(log_of(study, home), may_write=lambda: writes.acquire(blocking=False))
    results = [result_of(run, 3) for run in study.runs()]
    store = Store(str(home / "store"))
    for result in results:
        assert result.stage is not None
        store.write(
            result.stage.key, records=result.records, facts=result.facts,
            environment=result.stage.environment, state=None,
        )  # fmt: skip
    tracker.start([])
    for run in study.runs()[:5]:
        tracker.post(run, [epoch_of(run, 0)])
    writes.release(written)
    wait_until(lambda: len(runs_of(study, client, "seed")) == written)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            tracker.close(results)
    finally:
        signal.signal(signal.SIGALRM, before)
    writes.release(1000)
    tracker.settle(store, timeout=30)
    seeds = runs_of(study, client, "seed")
    in_training = [f"{run.arm} {run.arm} seed={run.seed}" for run in study.runs()[:written]]
    assert {seeds[name].info.status for name in in_training} == {"FINISHED"}
    everything = {**seeds, **runs_of(study, client, "config")}
    assert "RUNNING" not in {run.info.status for run in everything.values()}
    assert len(seeds) <= 5, "the rest is left to sync"


def test_a_tracker_interrupted_before_its_start_creates_no_experiment(
    study: Study, home: Path, client: MlflowClient
) -> None:
    tracker_of(study, home).settle(Store(str(home / "store")))
    assert client.get_experiment_by_name(study.name) is None


def test_a_tracker_is_pickled_without_its_state(study: Study, home: Path) -> None:
    tracker = tracker_of(study, home)
    tracker.start([])
    assert pickle.loads(pickle.dumps(tracker)).__dict__ == {}
    assert closed(tracker, [])


def test_an_outage_of_the_tracking_server_loses_no_results(
    study: Study, home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mount = tmp_path / "mount"
    mount.write_text("a file where a folder should be")
    tracker = tracker_of(study, mount)
    tracker.start(results_of(study, 1, 1, 1, 1))
    wait_until(lambda: caplog.messages)
    run = study.runs()[0]
    tracker.post(run, [epoch_of(run, 1)])
    mount.unlink()
    mount.symlink_to(home)
    assert closed(tracker, [])
    tracked = read_runs(Home(folder=home).tracking_uri, study.name)
    assert tracked[0].records == result_of(run, 2).records
    assert len(tracked) == 4
    began, ended = caplog.messages
    assert "a write failed and is repeated" in began
    assert ended.endswith("writes succeed again")


def test_a_backlog_at_the_end_is_left_to_the_next_tracker(
    study: Study, home: Path, client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run is RUNNING in MLflow when the time is over: it is written before the others."""
    study = replace(study, seeds=tuple(range(20)))
    slow, fast = log_of(study, home), log_of(study, home)
    write_run = slow.write_run
    monkeypatch.setattr(slow, "write_run", lambda p: (time.sleep(0.3), write_run(p))[1])
    tracker = Tracker(slow)
    tracker.start([])
    live = study.runs()[-1]
    tracker.post(live, [epoch_of(live, 0)])
    wait_until(lambda: runs_of(study, client, "seed"))
    results = [result_of(run, 3) for run in study.runs()]
    assert not closed(tracker, results, timeout=1.0)
    assert re.fullmatch(r"[0-9]+ results were not written", tracker.trouble or "")
    shown = runs_of(study, client, "seed").values()
    assert {run.info.status for run in shown} == {"FINISHED"}
    assert len(shown) < len(results)
    again = Tracker(fast)
    again.start(results)
    assert closed(again, results)
    assert len(finished(study, client)) == len(results)


def test_an_unreachable_server_is_reported_without_its_password(
    study: Study, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    port = free_port()
    tracker = Tracker(
        StudyLog(
            study, f"http://ann:secret@127.0.0.1:{port}", summariser=lambda study, arm: summarise
        )
    )
    tracker.start(results_of(study, 1, 0, 0, 0))
    wait_until(lambda: caplog.messages)
    assert not closed(tracker, [], timeout=0.1)
    assert f"MLflow at http://***@127.0.0.1:{port}: a write failed" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.slow
def test_a_server_that_starts_late_gets_all_stored_results(study: Study, tmp_path: Path) -> None:
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    tracker = Tracker(StudyLog(study, uri, summariser=lambda study, arm: summarise))
    tracker.start(results_of(study, 3, 3, 3, 2))
    run = study.runs()[3]
    tracker.post(run, [epoch_of(run, 2)])
    results = results_of(study, 3, 3, 3, 3)
    with mlflow_server(tmp_path, port):
        assert closed(tracker, results, timeout=100, patience=100)
        tracked = read_runs(uri, study.name)
    assert [run.records for run in tracked] == [result.records for result in results]
    assert {run.outcome for run in tracked} == {"complete"}
