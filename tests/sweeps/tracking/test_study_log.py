"""Runs of a study in MLflow, against the results in the store; read by MLflow's client alone."""

import sqlite3
import statistics
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlflow.pytorch
import pytest
import torch
from mlflow import MlflowClient

from mixup_core.config.written_forms import flatten
from mixup_core.images.choices.models import Mlp
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.training import TrainingState
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from sweeps.machine.home import Home
from sweeps.study.study import Study
from sweeps.tracking.connection import FinalRefusalError, is_refusal
from sweeps.tracking.experiment import CONTENT_TAG, OWNER_TAG, PARENT_TAG
from sweeps.tracking.rows import RunProgress
from tests.sweeps.running.test_storing import BASE
from tests.sweeps.tracked import at_level, content_of, epoch_of, log_of, results_of, runs_of, write
from tests.tracked_runs import read_runs


def uri_of(home: Path) -> str:
    return Home(folder=home).tracking_uri


@pytest.fixture
def report(tmp_path: Path) -> Path:
    folder = tmp_path / "report"
    (folder / "figures").mkdir(parents=True)
    (folder / "table.md").write_text("| arm |")
    (folder / "figures" / "error.png").write_bytes(b"png")
    return folder


def test_mlflow_has_the_stored_results_of_started_runs_and_writing_twice_changes_nothing(
    study: Study, home: Path, client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeps.tracking.connection.PAGE", 4)
    found = results_of(study, 3, 2, 0, 3)
    write(log_of(study, home), found)
    once = content_of(study, client)
    write(log_of(study, home), found)
    assert content_of(study, client) == once
    results = [result for result in found if result.records]
    tracked = read_runs(uri_of(home), study.name)
    assert [(t.arm, t.seed, t.run_key, t.outcome, t.records) for t in tracked] == [
        (r.run.arm, r.run.seed, r.run.key, r.outcome, r.records) for r in results
    ]
    for run, result in zip(tracked, results, strict=True):
        flat = flatten(result.run.config)
        assert run.params == {path: str(value) for path, value in flat.items() if value is not None}


def test_seed_runs_are_children_of_their_arm_with_every_grouping_tag(
    study: Study, home: Path, client: MlflowClient, tmp_path: Path
) -> None:
    results = results_of(study, 3, 2, 3, 3)
    write(log_of(study, home), results)
    arms, seeds = runs_of(study, client, "config"), runs_of(study, client, "seed")
    assert set(arms) == {"erm erm", "midpoint midpoint"}
    assert set(seeds) == {f"{arm} {arm} seed={seed}" for arm in study.arms for seed in (0, 1)}
    for name, seed in seeds.items():
        arm = name.partition(" ")[0]
        assert seed.data.tags[PARENT_TAG] == arms[f"{arm} {arm}"].info.run_id
    for run in (*arms.values(), *seeds.values()):
        grouping = {key: run.data.tags[key] for key in ("study", "dataset", "commit")}
        assert grouping == {"study": study.name, "dataset": "fashion-mnist", "commit": "abc1234"}
    assert seeds["erm erm seed=1"].data.params["seed"] == "1"
    assert "seed" not in arms["erm erm"].data.params
    store, stage = Store(str(tmp_path)), results[0].stage
    store.predictions.write(stage.key, results[0].records[-1], b"logits")
    assert (tmp_path / seeds["erm erm seed=0"].data.tags["predictions"]).is_file()
    assert "predictions" not in seeds["midpoint midpoint seed=0"].data.tags


def test_names_with_long_settings_fit_into_a_database_and_name_their_seed(
    study: Study, home: Path, client: MlflowClient
) -> None:
    deep = replace(study.arms["erm"], model=Mlp(hidden=(11,) * 99))
    for arms in (study.arms, {**study.arms, "erm": deep}):
        either = replace(study, arms=arms)
        write(log_of(either, home), results_of(either, 1, 0, 1, 0))
    found = [*at_level(study, client, "config"), *at_level(study, client, "seed")]
    names = {run.info.run_name for run in found}
    assert len(names) == len(found)
    assert max(map(len, names)) <= 250


def test_an_arm_shows_the_mean_of_its_seeds_by_epochs_trained(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 3, 3, 3)
    write(log_of(study, home), results)
    arm = runs_of(study, client, "config")["erm erm"]
    of_arm = results[0], results[2]
    for metric in ("test/error", "train/loss"):
        rows = client.get_metric_history(arm.info.run_id, f"{metric}_mean")
        assert [(row.step, row.value) for row in rows] == [
            (epoch + 1, statistics.fmean(r.records[epoch].metrics[metric] for r in of_arm))
            for epoch in range(3)
        ]
        assert arm.data.metrics[f"{metric}_mean"] == rows[-1].value
    assert (arm.data.tags["n"], arm.data.tags["seeds"]) == ("2/2", "0 1")
    percent = 100 * arm.data.metrics["test/error_mean"]
    assert arm.data.tags["test/error"] == f"{percent:.2f} %"


def test_only_a_complete_run_is_finished(study: Study, home: Path, client: MlflowClient) -> None:
    results = list(results_of(study, 3, 2, 3, 0))
    failure = Failure(
        run_key=results[1].run.key, kind="diverged", message="loss nan", epoch=2, attempts=1
    )
    results[1] = replace(results[1], failure=failure)
    write(log_of(study, home), results)
    seeds = runs_of(study, client, "seed")
    assert {name: (s.info.status, s.data.tags["outcome"]) for name, s in seeds.items()} == {
        "erm erm seed=0": ("FINISHED", "complete"),
        "midpoint midpoint seed=0": ("FAILED", "diverged"),
        "erm erm seed=1": ("FINISHED", "complete"),
    }
    assert seeds["midpoint midpoint seed=0"].data.tags["mlflow.note.content"] == "loss nan"
    arms = runs_of(study, client, "config")
    assert {name: arm.info.status for name, arm in arms.items()} == {
        "erm erm": "FINISHED",
        "midpoint midpoint": "FAILED",
    }


def test_an_arm_has_no_mean_once_a_seed_has_diverged(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 3, 3, 2)
    write(log_of(study, home), results)
    key = results[3].run.key
    failure = Failure(run_key=key, kind="diverged", message="", epoch=2, attempts=1)
    for seed, has_mean in ((results[3], True), (replace(results[3], failure=failure), False)):
        write(log_of(study, home), [*results[:3], seed])
        tags = runs_of(study, client, "config")["midpoint midpoint"].data.tags
        assert (bool(tags["test/error"]), tags["n"]) == (has_mean, "1/2")


def test_the_rows_of_a_run_are_sent_before_their_hash(
    study: Study, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed in between has no hash, so that the next driver sends its rows again."""
    sent: list[tuple[bool, bool]] = []

    def record(_: object, rows: Any = (), tags: Any = None) -> None:
        sent.append((bool(rows), bool((tags or {}).get(CONTENT_TAG))))

    log = log_of(study, home)
    experiment = SimpleNamespace(entries={}, write=record, end=lambda *_: None)
    monkeypatch.setattr(log, "_experiment", lambda: experiment)
    monkeypatch.setattr(log, "_bring_arm", lambda _: None)
    monkeypatch.setattr(log, "_bring_seed", lambda *_: SimpleNamespace(tags={}, sent=set()))
    log.write_run(RunProgress.stored(results_of(study, 2)[0]))
    assert sent == [(True, False), (False, True)]


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_resumed_run_is_running_and_keeps_its_rows_once(
    study: Study, home: Path, client: MlflowClient, is_killed: bool
) -> None:
    """Killed without a word, or ended by an interrupt, which writes the state of its runs."""
    run, first = study.runs()[0], log_of(study, home)
    live = RunProgress(run=run, outcome="missing").trained([epoch_of(run, 0)])
    first.write_run(live)
    first.write_arm("erm", [live])
    everything = {**runs_of(study, client, "seed"), **runs_of(study, client, "config")}
    assert {entry.info.status for entry in everything.values()} == {"RUNNING"}
    before = {entry.info.run_id for entry in everything.values()}
    stored = results_of(study, 1, 0, 0, 0)
    if not is_killed:
        write(first, stored)

    def status() -> str:
        return str(runs_of(study, client, "seed")["erm erm seed=0"].info.status)

    again = log_of(study, home)
    again.write_run(RunProgress.stored(stored[0]))
    assert status() == "KILLED"
    again.write_run(RunProgress.stored(stored[0]).trained([epoch_of(run, 1)]))
    assert status() == "RUNNING"
    write(again, results_of(study, 3, 0, 0, 0))
    assert status() == "FINISHED"
    assert read_runs(uri_of(home), study.name)[0].records == results_of(study, 3)[0].records
    kept = (*at_level(study, client, "seed"), *at_level(study, client, "config"))
    assert before <= {entry.info.run_id for entry in kept}


def test_epochs_that_are_trained_again_in_one_launch_are_not_in_mlflow_twice(
    study: Study, home: Path, client: MlflowClient
) -> None:
    """A worker may find that a stored state is damaged, after its epochs were sent."""
    run, log = study.runs()[0], log_of(study, home)
    early = [epoch_of(run, epoch) for epoch in range(2)]
    earlier = [(r, replace(f, stored_at_ms=f.stored_at_ms - 5000)) for r, f in early]
    log.write_run(RunProgress(run=run, outcome="missing").trained(earlier))
    results = results_of(study, 3, 0, 0, 0)
    write(log, results)
    once = content_of(study, client)
    write(log, results)
    assert content_of(study, client) == once
    (tracked,) = read_runs(uri_of(home), study.name)
    assert (tracked.outcome, tracked.records) == ("complete", results[0].records)


def test_a_report_is_attached_to_the_study_with_its_common_settings(
    study: Study, home: Path, client: MlflowClient, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(report.parent)
    long = replace(study, description="as long as a paper " * 2000)
    for note in ("| arm |", "| new |" * 10_000):
        log_of(long, home).write_report(report, note)
    experiment = client.get_experiment_by_name(study.name)
    assert experiment.tags["mlflow.note.content"] == long.description[:5000]
    (sweep,) = at_level(study, client, "sweep")
    assert (sweep.info.run_name, sweep.info.status) == (study.name, "FINISHED")
    assert sweep.data.tags["mlflow.note.content"] == ("| new |" * 10_000)[:8000]
    assert sweep.data.params["epochs"] == "3"
    assert not {"mix.law", "seed"} & sweep.data.params.keys()
    names = [file.path for file in client.list_artifacts(sweep.info.run_id)]
    assert names == ["description.md", "figures", "table.md"]
    assert [path.name for path in report.parent.iterdir()] == ["report"], (
        "wrote where it was started"
    )
    kept = home / "artifacts" / sweep.info.run_id / "artifacts"
    assert (kept / "description.md").read_text() == long.description


@pytest.mark.filterwarnings("ignore")  # what torch.export and MLflow warn of is their own
def test_a_trained_network_is_logged_once_and_can_be_loaded(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = replace(BASE, epochs=1)
    study = Study(
        name="small", description="", arms={"erm": config}, seeds=(0,), baseline="erm", source=""
    )
    log, run = log_of(study, home), study.runs()[0]
    write(log, results_of(study, 1))
    log.write_network(run, b"no state")
    assert "cannot be exported: 8 bytes are not a training state of this run" in caplog.text
    trained = TrainingState.initial(config, DATASETS["digits"].info, torch.device("cpu"))
    for again in (log, log_of(study, home)):
        again.write_network(run, trained.to_bytes())
    client = MlflowClient(uri_of(home))
    (seed,) = runs_of(study, client, "seed").values()
    (model,) = client.search_logged_models([seed.info.experiment_id])
    assert (model.source_run_id, str(model.status)) == (seed.info.run_id, "READY")
    assert seed.data.tags["model"] == f"models:/{model.model_id}"
    assert [output.model_id for output in seed.outputs.model_outputs] == [model.model_id]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri_of(home))
    loaded = mlflow.pytorch.load_model(seed.data.tags["model"])
    images = torch.randn(7, 1, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(loaded(images), trained.network.eval()(images))


def test_two_stores_on_one_server_change_neither_each_others_nor_foreign_runs(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 3, 3, 3)
    write(log_of(study, home, owners=("a",)), results)
    experiment = client.get_experiment_by_name(study.name).experiment_id
    for tags in ({}, {"level": "seed", "arm": "erm", "seed": "0"}, {"level": "config"}):
        client.create_run(experiment, tags=tags)

    def others() -> dict[str, Any]:
        found = client.search_runs([experiment], run_view_type=3)
        kept = [run for run in found if run.data.tags.get(OWNER_TAG) != "b"]
        return {run.info.run_id: (dict(run.data), run.info.status, run.info.lifecycle_stage)
                for run in kept}  # fmt: skip

    before = repr(others())
    for number in (2, 3):
        again = log_of(study, home, owners=("b",))
        again.delete_all()
        write(again, results_of(study, *[number] * 4))
    assert repr(others()) == before


def test_runs_that_have_a_former_mark_of_their_store_are_written_once(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 3, 3, 3)
    for owners in (("a",), ("home",), ("home", "a"), ("home",)):
        write(log_of(study, home, owners=owners), results)
    experiment = client.get_experiment_by_name(study.name).experiment_id
    found = [run.data.tags for run in client.search_runs([experiment])]
    assert len(found) == len(
        {str((tags["level"], tags["arm"], tags.get("seed"))) for tags in found}
    )
    assert {tags[OWNER_TAG] for tags in found} == {"home"}


@pytest.mark.parametrize(
    ("table", "column", "aim", "has_runs"),
    [
        ("runs", "artifact_uri", "file://{out}", True),
        ("runs", "artifact_uri", "file://{home}/artifacts/%2e%2e/%2e%2e/out", True),
        ("experiments", "artifact_location", "file://{out}", False),
        ("experiments", "artifact_location", "file://{out}", True),  # as in a moved home
    ],
)
def test_a_tampered_database_sends_no_report_elsewhere(
    study: Study, home: Path, report: Path, table: str, column: str, aim: str, has_runs: bool
) -> None:
    out = report.parent / "out"
    client = MlflowClient(uri_of(home))
    if has_runs:
        write(log_of(study, home), results_of(study, 1, 0, 0, 0))
        log_of(study, home).write_report(report, "")
    else:
        client.create_experiment(study.name, Home(folder=home).artifact_location)
    with sqlite3.connect(home / "mlflow.db") as database:
        aimed = aim.format(home=home.resolve(), out=out)
        database.execute(f"UPDATE {table} SET {column} = ?", [aimed])
    database.close()
    log = log_of(study, home)
    write(log, results_of(study, 1, 0, 0, 0))
    log.write_report(report, "")
    assert not out.exists()
    (sweep,) = at_level(study, client, "sweep")
    assert (home / "artifacts" / sweep.info.run_id / "artifacts" / "table.md").is_file()


@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_experiment_of_another_program_is_refused(
    study: Study, home: Path, client: MlflowClient, is_deleted: bool
) -> None:
    found = client.create_experiment(study.name, tags={"mlflow.note.content": "mine"})
    client.create_run(found, tags={"level": "seed"})
    if is_deleted:
        client.delete_experiment(found)
    before = dict(client.get_experiment(found))
    with pytest.raises(FinalRefusalError, match="has only runs of another program") as told:
        write(log_of(study, home), results_of(study, 1, 0, 0, 0))
    assert is_refusal(told.value)
    assert dict(client.get_experiment(found)) == before
