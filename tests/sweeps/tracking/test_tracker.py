import signal
import statistics
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Experiment

from mixup_core.store.checkpoints import Store
from sweeps.machine.home import Home
from sweeps.study.study import Study
from sweeps.tracking.tracker import Tracker
from tests.faults.launches import wait_for
from tests.filled import put
from tests.servers import free_port
from tests.sweeps.tracked import epoch_of, log_of, result_of, results_of, runs_of
from tests.tracked_runs import read_runs


def tracker_of(study: Study, home: Path) -> Tracker:
    return Tracker(log_of(study, home))


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
        wait_for(
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
    wait_for(lambda: tracker.trouble)
    monkeypatch.setattr(tracker, "_may_write", lambda: False)  # nothing is left to wait for
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


def test_a_run_that_was_deleted_from_mlflow_during_the_launch_is_written_again(
    study: Study, home: Path, client: MlflowClient
) -> None:
    tracker = tracker_of(study, home)
    tracker.start(results_of(study, 1, 0, 0, 0))
    wait_for(lambda: not tracker.num_waiting and not tracker._is_busy)
    (deleted,) = runs_of(study, client, "seed").values()
    client.delete_run(deleted.info.run_id)
    results = results_of(study, 3, 0, 0, 0)
    assert closed(tracker, results)
    (tracked,) = read_runs(Home(folder=home).tracking_uri, study.name)
    assert tracked.records == results[0].records


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
        put(store, result.run, result.records, facts=result.facts)
    tracker.start([])
    for run in study.runs()[:5]:
        tracker.post(run, [epoch_of(run, 0)])
    writes.release(written)
    wait_for(lambda: len(runs_of(study, client, "seed")) == written)
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


def test_an_outage_of_the_tracking_server_loses_no_results(
    study: Study, home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mount = tmp_path / "mount"
    mount.write_text("a file where a folder should be")
    tracker = tracker_of(study, mount)
    tracker.start(results_of(study, 1, 1, 1, 1))
    wait_for(lambda: caplog.messages)
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


def test_an_unreachable_server_is_reported_without_its_password(
    study: Study, home: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    port = free_port()
    tracker = Tracker(replace(log_of(study, home), uri=f"http://ann:secret@127.0.0.1:{port}"))
    tracker.start(results_of(study, 1, 0, 0, 0))
    wait_for(lambda: caplog.messages)
    assert not closed(tracker, [], timeout=0.1)
    assert f"MLflow at http://***@127.0.0.1:{port}: a write failed" in caplog.text
    assert "secret" not in caplog.text


def test_the_queue_of_a_large_study_is_emptied_in_proportion_to_its_length(
    study: Study, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = tracker_of(study, home)
    monkeypatch.setattr(tracker, "_write", lambda *_: None)
    for number in range(20_000):
        tracker._post(("run", str(number)))
    began = time.process_time()
    tracker.start([])
    assert closed(tracker, [])
    assert time.process_time() - began < 3
