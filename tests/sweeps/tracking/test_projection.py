import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric

from mixup_core.store.checkpoints import Failure
from mixup_core.tree import flatten, with_values
from sweeps.home import Home
from sweeps.study import Study
from sweeps.tracking.experiment import PARENT_TAG, read_runs
from sweeps.tracking.projection import SUMMARISE_EVERY
from tests.sweeps.tracked import (
    ERM,
    NOON_MS,
    content_of,
    epoch_of,
    projection_of,
    result_of,
    results_of,
    runs_of,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"
)


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
    monkeypatch.setattr("sweeps.tracking.experiment._PAGE", 4)
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


def test_seeds_follow_their_arm_when_its_summary_is_begun_anew(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection_of(study, home).reconcile(results_of(study, 3, 3, 3, 3))
    before = runs_of(study, client, "config")["erm erm"].info.run_id
    fewer = results_of(study, 3, 3, 1, 3)
    projection = projection_of(study, home)
    projection.note(fewer)
    projection.catch_up(fewer)
    projection.summarise()
    after = runs_of(study, client, "config")["erm erm"].info.run_id
    assert after != before
    assert {
        run.data.tags[PARENT_TAG]
        for name, run in runs_of(study, client, "seed").items()
        if name.startswith("erm")
    } == {after}


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
