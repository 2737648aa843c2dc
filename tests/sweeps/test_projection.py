import os
import pickle
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric

from mixup_core.checkpoints import EpochFacts, Failure, Stage
from mixup_core.config import TrainConfig, flatten, stage_key, with_values
from mixup_core.laws import Midpoint
from mixup_core.records import EpochRecord
from sweeps.home import Home
from sweeps.projection import SUMMARISE_EVERY, Projection
from sweeps.results import RunResult
from sweeps.study import Run, Study
from sweeps.tracker import Tracker
from sweeps.tracking import read_runs

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"
)

ERM = TrainConfig(epochs=3, batch_size=10)
NOON_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One database for all tests, since creating its tables takes seconds."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def study(request: pytest.FixtureRequest) -> Study:
    """Two arms, two seeds, an experiment of its own for each test."""
    return Study(
        name=request.node.name.replace("_", "-"),
        description="Two arms at two seeds.",
        arms={"erm": ERM, "midpoint": with_values(ERM, {"mix.law": Midpoint()})},
        seeds=(0, 1),
        source="",
    )


@pytest.fixture
def client(home: Path) -> MlflowClient:
    return MlflowClient(Home(folder=home).tracking_uri)


def summarise(last: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    return {"test/error_mean": statistics.fmean(metrics["test/error"] for metrics in last)}


def projection_of(
    study: Study, home: Path, clock: Callable[[], float] = time.monotonic
) -> Projection:
    return Projection(
        study,
        Home(folder=home).tracking_uri,
        summarise=summarise,
        artifact_location=Home(folder=home).artifact_location,
        tags={"commit": "abc1234"},
        clock=clock,
    )


def tracker_of(study: Study, home: Path) -> Tracker:
    return Tracker(projection_of(study, home))


def epoch_of(run: Run, epoch: int) -> tuple[EpochRecord, EpochFacts]:
    """Values that no two runs or epochs share and that no short decimal spells."""
    unit = 1 / (3 + epoch + 10 * run.seed + 100 * len(run.arm))
    record = EpochRecord(epoch=epoch, metrics={"train/loss": unit, "test/error": unit / 7})
    return record, EpochFacts(seconds=1.5, stored_at_ms=NOON_MS + 1000 * epoch + run.seed)


def result_of(run: Run, epochs: int, failure: Failure | None = None) -> RunResult:
    if epochs == 0:
        return RunResult(run=run, stage=None, failure=failure)
    pairs = [epoch_of(run, epoch) for epoch in range(epochs)]
    stage = Stage(
        key=stage_key(run.config, epochs),
        records=tuple(record for record, _ in pairs),
        facts=tuple(facts for _, facts in pairs),
        environment={"torch": "2.14.1"},
        state=None,
    )
    return RunResult(run=run, stage=stage, failure=failure)


def results_of(study: Study, *epochs: int) -> tuple[RunResult, ...]:
    """Epochs stored of each run, in the order of `Study.runs`: erm 0, midpoint 0, erm 1, ..."""
    return tuple(map(result_of, study.runs(), epochs))


def runs_of(study: Study, client: MlflowClient, level: str) -> dict[str, Any]:
    """MLflow's runs of one level by arm and run name."""
    experiment = client.get_experiment_by_name(study.name)
    if experiment is None:
        return {}
    found = client.search_runs([experiment.experiment_id], f"tags.level = '{level}'")
    return {f"{run.data.tags['arm']} {run.info.run_name}": run for run in found}


def content_of(study: Study, client: MlflowClient) -> set[tuple[Any, ...]]:
    """Everything that MLflow holds of a study: runs, params, tags and every metric row."""
    content: set[tuple[Any, ...]] = set()
    experiment = client.get_experiment_by_name(study.name)
    for run in client.search_runs([experiment.experiment_id]):
        key = run.info.run_id
        content |= {(key, run.info.status, run.info.end_time)}
        content |= {(key, *item) for item in (*run.data.params.items(), *run.data.tags.items())}
        for name in run.data.metrics:
            rows = client.get_metric_history(key, name)
            content |= {(key, name, row.step, row.timestamp, row.value) for row in rows}
            assert len(rows) == len({row.step for row in rows}), "two rows at one step"
    return content


def wait_until(happened: Callable[[], object]) -> None:
    until = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.01)


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


def test_the_reader_gives_back_what_the_store_holds(study: Study, home: Path) -> None:
    results = results_of(study, 3, 2, 0, 3)
    projection_of(study, home).reconcile(results)
    tracked = read_runs(Home(folder=home).tracking_uri, study.name)
    assert [(t.arm, t.seed, t.run_key, t.outcome, t.records) for t in tracked] == [
        (r.run.arm, r.run.seed, r.run.key, r.outcome, r.records) for r in results
    ]
    for run, result in zip(tracked, results, strict=True):
        flat = flatten(result.run.config)
        assert run.params == {path: value for path, value in flat.items() if value is not None}


def test_an_experiment_is_read_page_by_page(
    study: Study, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeps.tracking._PAGE", 4)
    projection_of(study, home).reconcile(results_of(study, 1, 1, 1, 1))
    projection_of(study, home).reconcile(results_of(study, 1, 1, 1, 1))
    assert len(read_runs(Home(folder=home).tracking_uri, study.name)) == 4


def test_reconciling_twice_changes_nothing(study: Study, home: Path, client: MlflowClient) -> None:
    results = results_of(study, 3, 2, 0, 3)
    projection_of(study, home).reconcile(results)
    once = content_of(study, client)
    projection_of(study, home).reconcile(results)
    assert content_of(study, client) == once


def test_seeds_are_children_of_their_arm_and_carry_every_grouping_key(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection_of(study, home).reconcile(results_of(study, 3, 3, 3, 3))
    arms, seeds = runs_of(study, client, "config"), runs_of(study, client, "seed")
    assert set(arms) == {"erm erm", "midpoint midpoint"}
    assert set(seeds) == {"erm seed=0", "erm seed=1", "midpoint seed=0", "midpoint seed=1"}
    for name, seed in seeds.items():
        arm = name.split()[0]
        assert seed.data.tags["mlflow.parentRunId"] == arms[f"{arm} {arm}"].info.run_id
    for run in (*arms.values(), *seeds.values()):
        grouping = {key: run.data.tags[key] for key in ("study", "dataset", "commit")}
        assert grouping == {"study": study.name, "dataset": "fashion-mnist", "commit": "abc1234"}
    assert seeds["erm seed=1"].data.params["seed"] == "1"
    assert "seed" not in arms["erm erm"].data.params
    keys = [seed.data.tags["run_key"] for seed in seeds.values()]
    assert sorted(keys) == sorted(run.key for run in study.runs())


def test_an_arm_shows_its_summary_over_complete_seeds(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 2, 3, 3)
    projection_of(study, home).reconcile(results)
    arms = runs_of(study, client, "config")
    erm = [
        results[0].records[-1].metrics["test/error"],
        results[2].records[-1].metrics["test/error"],
    ]
    assert arms["erm erm"].data.metrics == {
        "n": 2.0,
        "seeds_expected": 2.0,
        "test/error_mean": statistics.fmean(erm),
    }
    midpoint = arms["midpoint midpoint"].data.metrics
    assert midpoint["n"] == 1.0
    assert midpoint["test/error_mean"] == results[3].records[-1].metrics["test/error"]


def test_only_a_complete_run_is_finished(study: Study, home: Path, client: MlflowClient) -> None:
    results = list(results_of(study, 3, 2, 3, 0))
    failure = Failure(
        run_key=results[1].run.key, kind="diverged", message="loss nan", epoch=2, attempts=1
    )
    results[1] = replace(results[1], failure=failure)
    projection_of(study, home).reconcile(results)
    seeds = runs_of(study, client, "seed")
    assert {name: (s.info.status, s.data.tags["outcome"]) for name, s in seeds.items()} == {
        "erm seed=0": ("FINISHED", "complete"),
        "midpoint seed=0": ("FAILED", "diverged"),
        "erm seed=1": ("FINISHED", "complete"),
        "midpoint seed=1": ("KILLED", "missing"),
    }
    assert seeds["midpoint seed=0"].data.tags["mlflow.note.content"] == "loss nan"
    arms = runs_of(study, client, "config")
    assert {name: arm.info.status for name, arm in arms.items()} == {
        "erm erm": "FINISHED",
        "midpoint midpoint": "FAILED",
    }


def test_an_arm_is_summarised_now_and_then_while_its_seeds_end_and_when_the_last_has(
    study: Study, home: Path, client: MlflowClient
) -> None:
    study = replace(study, seeds=(0, 1, 2, 3))
    now = [0.0]
    projection = projection_of(study, home, clock=lambda: now[0])
    results = [result_of(run, 3) for run in study.runs_of("erm")]
    shown = []
    for at, result in zip((0.0, 1.0, SUMMARISE_EVERY, SUMMARISE_EVERY + 1.0), results, strict=True):
        now[0] = at
        projection.end(result)
        projection.summarise()
        shown.append(runs_of(study, client, "config")["erm erm"].data.metrics["n"])
    assert shown == [1, 1, 3, 4]
    arm = runs_of(study, client, "config")["erm erm"]
    errors = [result.records[-1].metrics["test/error"] for result in results]
    assert arm.data.metrics["test/error_mean"] == statistics.fmean(errors)
    assert (arm.info.status, arm.data.tags["outcome"]) == ("FINISHED", "complete")


def test_what_a_launch_found_is_not_written_over_what_it_trained_since(
    study: Study, home: Path, client: MlflowClient
) -> None:
    found = results_of(study, 1, 0, 0, 0)
    projection = projection_of(study, home)
    projection.note(found)
    trained, *others = results_of(study, 3, 3, 0, 0)
    projection.end(trained)
    projection.write_epochs(others[0].run, [epoch_of(others[0].run, 0)])
    projection.catch_up(found)
    projection.summarise()
    seeds = runs_of(study, client, "seed")
    assert {name: seed.info.status for name, seed in seeds.items()} == {
        "erm seed=0": "FINISHED",
        "midpoint seed=0": "RUNNING",
        "erm seed=1": "KILLED",
        "midpoint seed=1": "KILLED",
    }
    assert read_runs(Home(folder=home).tracking_uri, study.name)[0].records == trained.records


def test_a_study_larger_than_one_part_is_caught_up_with_to_the_last_run(
    study: Study, home: Path, client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeps.tracker._PART", 1)
    results = results_of(study, 3, 2, 0, 3)
    tracker = tracker_of(study, home)
    tracker.start(results)
    wait_until(lambda: len(runs_of(study, client, "seed")) == len(results))
    assert tracker.close(results)
    tracked = read_runs(Home(folder=home).tracking_uri, study.name)
    assert [run.records for run in tracked] == [result.records for result in results]


def test_training_shows_as_running_until_the_projection_is_settled(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection = projection_of(study, home)
    run = study.runs()[0]
    projection.write_epochs(run, [epoch_of(run, 0)])
    assert runs_of(study, client, "seed")["erm seed=0"].info.status == "RUNNING"
    projection.reconcile(results_of(study, 1, 0, 0, 0))
    assert runs_of(study, client, "seed")["erm seed=0"].info.status == "RUNNING"
    assert runs_of(study, client, "config")["erm erm"].info.status == "RUNNING"

    projection.settle()
    everything = {**runs_of(study, client, "seed"), **runs_of(study, client, "config")}
    assert {run.info.status for run in everything.values()} == {"KILLED"}


def test_a_killed_run_is_running_again_when_it_is_resumed(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection_of(study, home).reconcile(results_of(study, 1, 0, 0, 0))
    resumed = projection_of(study, home)
    run = study.runs()[0]
    resumed.write_epochs(run, [epoch_of(run, 0)])
    assert runs_of(study, client, "seed")["erm seed=0"].info.status == "KILLED"
    resumed.write_epochs(run, [epoch_of(run, 1)])
    assert runs_of(study, client, "seed")["erm seed=0"].info.status == "RUNNING"
    resumed.reconcile(results_of(study, 3, 0, 0, 0))
    assert runs_of(study, client, "seed")["erm seed=0"].info.status == "FINISHED"


def test_what_a_killed_driver_had_queued_is_written_by_the_next(
    study: Study, home: Path, client: MlflowClient
) -> None:
    killed = projection_of(study, home)
    run = study.runs()[0]
    killed.write_epochs(run, [epoch_of(run, 0)])
    killed.write_epochs(run, [epoch_of(run, 2)])
    results = results_of(study, 3, 0, 0, 0)
    projection_of(study, home).reconcile(results)
    assert read_runs(Home(folder=home).tracking_uri, study.name)[0].records == results[0].records
    repaired = runs_of(study, client, "seed")
    assert repaired["erm seed=0"].info.status == "FINISHED"
    assert len(repaired) == 4


def test_an_epoch_stored_again_at_another_time_stays_one_row(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection = projection_of(study, home)
    run = study.runs()[0]
    record, facts = epoch_of(run, 0)
    projection.write_epochs(run, [(record, facts)])
    projection.write_epochs(run, [(record, replace(facts, stored_at_ms=facts.stored_at_ms + 5))])
    rows = client.get_metric_history(
        runs_of(study, client, "seed")["erm seed=0"].info.run_id, "test/error"
    )
    assert [row.timestamp for row in rows] == [facts.stored_at_ms]


def test_a_run_that_contradicts_the_store_is_replaced(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 3, 3, 3)
    projection_of(study, home).reconcile(results)
    wrong = runs_of(study, client, "seed")["erm seed=0"].info.run_id
    client.log_batch(wrong, metrics=[Metric("test/error", 0.5, NOON_MS, 1)])
    projection_of(study, home).reconcile(results)
    assert read_runs(Home(folder=home).tracking_uri, study.name)[0].records == results[0].records
    assert client.get_run(wrong).info.lifecycle_stage == "deleted"
    content_of(study, client)


def test_epochs_that_were_trained_again_show_the_time_of_the_second_training(
    study: Study, home: Path, client: MlflowClient
) -> None:
    first, *others = results_of(study, 3, 3, 3, 3)
    assert first.stage is not None
    later = tuple(replace(f, stored_at_ms=f.stored_at_ms + 5) for f in first.facts)
    again = replace(first, stage=replace(first.stage, facts=later))
    projection_of(study, home).reconcile([first, *others])
    projection_of(study, home).reconcile([again, *others])
    run_id = runs_of(study, client, "seed")["erm seed=0"].info.run_id
    rows = client.get_metric_history(run_id, "test/error")
    assert [row.timestamp for row in rows] == [facts.stored_at_ms for facts in later]


def test_a_summary_follows_the_store_backwards_too(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection_of(study, home).reconcile(results_of(study, 3, 3, 3, 3))
    fewer = results_of(study, 3, 3, 1, 3)
    projection_of(study, home).reconcile(fewer)
    metrics = runs_of(study, client, "config")["erm erm"].data.metrics
    assert metrics["n"] == 1.0
    assert metrics["test/error_mean"] == fewer[0].records[-1].metrics["test/error"]
    assert read_runs(Home(folder=home).tracking_uri, study.name)[2].records == fewer[2].records


def test_runs_of_a_former_version_of_an_arm_are_not_read(study: Study, home: Path) -> None:
    projection_of(study, home).reconcile(results_of(study, 3, 3, 3, 3))
    arms = {**study.arms, "erm": with_values(ERM, {"optimizer.lr": 0.1})}
    edited = replace(study, arms=arms)
    projection_of(edited, home).reconcile(results_of(edited, 3, 0, 0, 0))
    tracked = read_runs(Home(folder=home).tracking_uri, study.name)
    assert [run.run_key for run in tracked] == [run.key for run in edited.runs()]


def test_runs_of_others_in_the_experiment_are_left_alone(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection = projection_of(study, home)
    projection.reconcile(results_of(study, 3, 3, 3, 3))
    experiment = client.get_experiment_by_name(study.name)
    own = client.create_run(experiment.experiment_id, run_name="my notes").info.run_id
    projection.forget()
    projection.reconcile(results_of(study, 3, 3, 3, 3))
    projection.settle()
    assert client.get_run(own).info.status == "RUNNING"
    assert len(read_runs(Home(folder=home).tracking_uri, study.name)) == 4


def test_a_run_created_twice_by_a_lost_answer_becomes_one(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 3, 3, 3)
    projection_of(study, home).reconcile(results)
    first = runs_of(study, client, "seed")["erm seed=0"]
    client.create_run(first.info.experiment_id, tags=first.data.tags)
    projection_of(study, home).reconcile(results)
    assert len(read_runs(Home(folder=home).tracking_uri, study.name)) == 4


def test_a_run_deleted_while_it_is_written_is_written_anew(
    study: Study, home: Path, client: MlflowClient, caplog: pytest.LogCaptureFixture
) -> None:
    run = study.runs()[0]
    tracker = tracker_of(study, home)
    tracker.start(results_of(study, 1, 0, 0, 0))
    wait_until(lambda: "midpoint seed=1" in runs_of(study, client, "seed"))
    client.delete_run(runs_of(study, client, "seed")["erm seed=0"].info.run_id)
    tracker.post(run, [epoch_of(run, 1)])
    assert tracker.close(results_of(study, 2, 0, 0, 0))
    assert (
        read_runs(Home(folder=home).tracking_uri, study.name)[0].records
        == result_of(run, 2).records
    )
    assert caplog.records == []


def test_what_mlflow_refuses_is_dropped_with_a_warning_and_holds_nothing_up(
    study: Study, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = tracker_of(study, home)
    tracker.start([])
    run, other, *_ = study.runs()
    _, facts = epoch_of(run, 0)
    tracker.post(run, [(EpochRecord(epoch=0, metrics={"100%": 0.0}), facts)])
    tracker.post(other, [epoch_of(other, 0)])
    assert not tracker.close([]), "what was dropped did not arrive"
    (warning,) = caplog.messages
    assert warning.startswith("MLflow refuses a write, which is dropped")
    tracked = {run.run_key: run for run in read_runs(Home(folder=home).tracking_uri, study.name)}
    assert tracked[other.key].records == result_of(other, 1).records
    assert (tracked[run.key].records, tracked[run.key].outcome) == ((), "missing")


def test_a_report_is_attached_to_the_study(
    study: Study,
    home: Path,
    client: MlflowClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "table.md").write_text("| arm |")
    (tmp_path / "figures" / "error.png").write_bytes(b"png")
    for note in ("| arm |", "| new |" * 10_000):
        projection_of(study, home).log_report(tmp_path, note)
    experiment = client.get_experiment_by_name(study.name)
    assert experiment.tags["mlflow.note.content"] == study.description
    (sweep,) = client.search_runs([experiment.experiment_id], "tags.level = 'sweep'")
    assert (sweep.info.run_name, sweep.info.status) == (study.name, "FINISHED")
    assert sweep.data.tags["mlflow.note.content"] == ("| new |" * 10_000)[:8000]
    names = [file.path for file in client.list_artifacts(sweep.info.run_id)]
    assert names == ["figures", "table.md"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names, "wrote where it was started"
    assert (home / "artifacts" / sweep.info.run_id / "artifacts" / "table.md").exists()


def test_a_tracker_writes_what_is_posted_and_leaves_nothing_running(
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
    assert tracker.close(results)
    tracked = read_runs(Home(folder=home).tracking_uri, study.name)
    assert [run.records for run in tracked] == [result.records for result in results]
    everything = {**runs_of(study, client, "seed"), **runs_of(study, client, "config")}
    assert {run.info.status for run in everything.values()} == {"FINISHED", "KILLED"}


def test_a_tracker_pickles_as_nothing(study: Study, home: Path) -> None:
    tracker = tracker_of(study, home)
    tracker.start([])
    assert pickle.loads(pickle.dumps(tracker)).__dict__ == {}
    assert tracker.close([])


def test_an_outage_loses_nothing(
    study: Study, home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mount = tmp_path / "mount"
    mount.write_text("a file where a folder should be")
    tracker = tracker_of(study, mount)
    tracker.start(results_of(study, 1, 0, 0, 0))
    wait_until(lambda: caplog.messages)
    run = study.runs()[0]
    tracker.post(run, [epoch_of(run, 1)])
    mount.unlink()
    mount.symlink_to(home)
    assert tracker.close([])
    tracked = read_runs(Home(folder=home).tracking_uri, study.name)
    assert tracked[0].records == result_of(run, 2).records
    assert len(tracked) == 4
    began, ended = caplog.messages
    assert "does not accept" in began
    assert ended.endswith("accepts again")


def test_an_unreachable_server_is_told_of_without_its_password(
    study: Study, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    port = free_port()
    tracker = Tracker(Projection(study, f"http://ann:secret@127.0.0.1:{port}", summarise=summarise))
    tracker.start(results_of(study, 1, 0, 0, 0))
    wait_until(lambda: caplog.messages)
    assert not tracker.close([], timeout=0.1)
    assert f"MLflow at http://ann:***@127.0.0.1:{port}: does not accept" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_server_that_comes_late_holds_what_the_store_holds(study: Study, tmp_path: Path) -> None:
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    tracker = Tracker(Projection(study, uri, summarise=summarise))
    tracker.start(results_of(study, 3, 3, 3, 2))
    run = study.runs()[3]
    tracker.post(run, [epoch_of(run, 2)])
    results = results_of(study, 3, 3, 3, 3)
    with mlflow_server(tmp_path, port):
        assert tracker.close(results, timeout=100, patience=100)
        tracked = read_runs(uri, study.name)
    assert [run.records for run in tracked] == [result.records for result in results]
    assert {run.outcome for run in tracked} == {"complete"}
