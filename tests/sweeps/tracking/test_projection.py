import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow.pytorch
import pytest
import torch
from mlflow import MlflowClient
from mlflow.entities import Metric

from mixup_core.config.building import with_values
from mixup_core.config.written_forms import flatten
from mixup_core.images.choices.models import Mlp
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.catalog import CATALOG
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.training import TrainingState
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from sweeps.machine.databases import database_file
from sweeps.machine.home import Home
from sweeps.study.study import Run, Study
from sweeps.tracking.database import clear_metrics
from sweeps.tracking.logged_run import PARENT_TAG, STEP_TAG
from sweeps.tracking.progress import RunProgress
from sweeps.tracking.projection import Projection
from tests.sweeps.tracked import (
    NOON_MS,
    content_of,
    epoch_of,
    projection_of,
    reconcile,
    results_of,
    runs_of,
    summarise,
)
from tests.tracked_runs import read_runs

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"
)


def train(projection: Projection, run: Run, *epochs: int) -> RunProgress:
    """Set the time of storing of a run's epochs to now."""
    progress = RunProgress(run=run, outcome="missing").trained(epoch_of(run, e) for e in epochs)
    projection.reconcile_run(progress)
    return progress


def test_the_reader_returns_the_stored_results_of_started_runs(study: Study, home: Path) -> None:
    found = results_of(study, 3, 2, 0, 3)
    reconcile(projection_of(study, home), found)
    results = [result for result in found if result.records]
    tracked = read_runs(Home(folder=home).tracking_uri, study.name)
    assert [(t.arm, t.seed, t.run_key, t.outcome, t.records) for t in tracked] == [
        (r.run.arm, r.run.seed, r.run.key, r.outcome, r.records) for r in results
    ]
    for run, result in zip(tracked, results, strict=True):
        flat = flatten(result.run.config)
        assert run.params == {path: value for path, value in flat.items() if value is not None}


def test_an_experiment_with_several_pages_is_read_completely(
    study: Study, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeps.tracking.ownership.PAGE", 4)
    reconcile(projection_of(study, home), results_of(study, 1, 1, 1, 1))
    reconcile(projection_of(study, home), results_of(study, 1, 1, 1, 1))
    assert len(read_runs(Home(folder=home).tracking_uri, study.name)) == 4


def test_reconciling_twice_does_not_change_the_tracked_runs(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 2, 0, 3)
    reconcile(projection_of(study, home), results)
    once = content_of(study, client)
    reconcile(projection_of(study, home), results)
    assert content_of(study, client) == once


def test_seed_runs_are_children_of_their_arm_with_every_grouping_tag(
    study: Study, home: Path, client: MlflowClient
) -> None:
    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    arms, seeds = runs_of(study, client, "config"), runs_of(study, client, "seed")
    assert set(arms) == {"erm erm", "midpoint midpoint"}
    assert set(seeds) == {
        "erm erm seed=0",
        "erm erm seed=1",
        "midpoint midpoint seed=0",
        "midpoint midpoint seed=1",
    }
    for name, seed in seeds.items():
        arm = name.partition(" ")[0]
        assert seed.data.tags["mlflow.parentRunId"] == arms[f"{arm} {arm}"].info.run_id
    for run in (*arms.values(), *seeds.values()):
        grouping = {key: run.data.tags[key] for key in ("study", "dataset", "commit")}
        assert grouping == {"study": study.name, "dataset": "fashion-mnist", "commit": "abc1234"}
    assert seeds["erm erm seed=1"].data.params["seed"] == "1"
    assert "seed" not in arms["erm erm"].data.params
    keys = [seed.data.tags["run_key"] for seed in seeds.values()]
    assert sorted(keys) == sorted(run.key for run in study.runs())


def test_a_finished_run_has_a_tag_with_the_path_of_its_predictions(
    study: Study, home: Path, client: MlflowClient, tmp_path: Path
) -> None:
    results = results_of(study, 3, 2, 3, 3)
    reconcile(projection_of(study, home), results)
    seeds = {name: run.data.tags for name, run in runs_of(study, client, "seed").items()}
    assert "predictions" not in seeds["midpoint midpoint seed=0"]
    first = results[0]
    assert first.stage is not None
    store = Store(str(tmp_path))
    store.predictions.write(first.stage.key, first.records[-1], b"logits")
    assert (tmp_path / seeds["erm erm seed=0"]["predictions"]).is_file()


def test_a_run_counts_the_epochs_trained(study: Study, home: Path, client: MlflowClient) -> None:
    results = results_of(study, 3, 3, 3, 3)
    reconcile(projection_of(study, home), results)
    run = runs_of(study, client, "seed")["erm erm seed=0"]
    rows = client.get_metric_history(run.info.run_id, "test/error")
    assert [row.step for row in rows] == [1, 2, 3]
    assert [row.value for row in rows] == [r.metrics["test/error"] for r in results[0].records]


def test_a_run_with_zero_based_steps_continues_with_zero_based_steps(
    study: Study, home: Path, client: MlflowClient
) -> None:
    uri = Home(folder=home).tracking_uri
    before, after = results_of(study, 2, 2, 2, 2), results_of(study, 3, 3, 3, 3)
    reconcile(projection_of(study, home), before)
    database = database_file(uri)
    assert database is not None
    runs = runs_of(study, client, "seed")
    for result in before:
        run_id = runs[f"{result.run.arm} {result.run.arm} seed={result.run.seed}"].info.run_id
        clear_metrics(database, run_id)
        client.delete_tag(run_id, STEP_TAG)
        for record, facts in zip(result.records, result.facts, strict=True):
            for name, value in record.metrics.items():
                client.log_metric(run_id, name, value, facts.stored_at_ms, record.epoch)
    reconcile(projection_of(study, home), after)
    for name, run in runs_of(study, client, "seed").items():
        assert run.info.run_id == runs[name].info.run_id
        rows = client.get_metric_history(run.info.run_id, "test/error")
        assert [row.step for row in rows] == [0, 1, 2]
    assert [run.records for run in read_runs(uri, study.name)] == [r.records for r in after]


def test_an_arm_shows_the_mean_of_its_seeds_by_epochs_trained(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 3, 3, 3)
    reconcile(projection_of(study, home), results)
    arm = runs_of(study, client, "config")["erm erm"]
    of_arm = results[0], results[2]
    for metric in ("test/error", "train/loss"):
        rows = client.get_metric_history(arm.info.run_id, f"{metric}_mean")
        assert [(row.step, row.value) for row in rows] == [
            (epoch + 1, statistics.fmean(r.records[epoch].metrics[metric] for r in of_arm))
            for epoch in range(3)
        ]
        assert [row.timestamp for row in rows] == [
            max(r.facts[epoch].stored_at_ms for r in of_arm) + 2 for epoch in range(3)
        ]
        assert arm.data.metrics[f"{metric}_mean"] == rows[-1].value
    assert (arm.data.tags["n"], arm.data.tags["seeds"]) == ("2/2", "0 1")
    percent = 100 * arm.data.metrics["test/error_mean"]
    assert arm.data.tags["test/error"] == f"{percent:.2f} %"


def test_an_arm_that_lacks_seeds_shows_its_seed_count_and_has_no_metric(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 2, 3, 3)
    reconcile(projection_of(study, home), results)
    midpoint = runs_of(study, client, "config")["midpoint midpoint"].data
    assert midpoint.metrics == {}
    assert (midpoint.tags["n"], midpoint.tags["outcome"]) == ("1/2", "partial")
    error = results[3].records[-1].metrics["test/error"]
    assert midpoint.tags["test/error"] == f"{100 * error:.2f} % (1/2)"


def test_only_a_complete_run_is_finished(study: Study, home: Path, client: MlflowClient) -> None:
    results = list(results_of(study, 3, 2, 3, 0))
    failure = Failure(
        run_key=results[1].run.key, kind="diverged", message="loss nan", epoch=2, attempts=1
    )
    results[1] = replace(results[1], failure=failure)
    reconcile(projection_of(study, home), results)
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


def test_seed_runs_move_to_the_new_parent_when_an_arm_summary_is_recreated(
    study: Study, home: Path, client: MlflowClient
) -> None:
    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    before = runs_of(study, client, "config")["erm erm"].info.run_id
    reconcile(projection_of(study, home), results_of(study, 3, 3, 1, 3))
    after = runs_of(study, client, "config")["erm erm"].info.run_id
    assert after != before
    assert {
        run.data.tags[PARENT_TAG]
        for name, run in runs_of(study, client, "seed").items()
        if name.startswith("erm")
    } == {after}


def test_a_run_in_training_is_shown_as_running_until_the_projection_is_settled(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection = projection_of(study, home)
    live = train(projection, study.runs()[0], 0)
    projection.reconcile_arm("erm", [live])
    assert runs_of(study, client, "seed")["erm erm seed=0"].info.status == "RUNNING"
    assert runs_of(study, client, "config")["erm erm"].info.status == "RUNNING"

    projection.settle()
    everything = {**runs_of(study, client, "seed"), **runs_of(study, client, "config")}
    assert {run.info.status for run in everything.values()} == {"KILLED"}


def test_a_killed_run_is_shown_as_running_when_resumed(
    study: Study, home: Path, client: MlflowClient
) -> None:
    stored = results_of(study, 1, 0, 0, 0)
    reconcile(projection_of(study, home), stored)
    resumed = projection_of(study, home)
    run = study.runs()[0]
    found = RunProgress.stored(stored[0])
    assert found.trained([epoch_of(run, 0)]) == found
    assert runs_of(study, client, "seed")["erm erm seed=0"].info.status == "KILLED"
    resumed.reconcile_run(found.trained([epoch_of(run, 1)]))
    assert runs_of(study, client, "seed")["erm erm seed=0"].info.status == "RUNNING"
    reconcile(resumed, results_of(study, 3, 0, 0, 0))
    assert runs_of(study, client, "seed")["erm erm seed=0"].info.status == "FINISHED"


def test_items_queued_by_a_killed_driver_are_written_by_the_next(
    study: Study, home: Path, client: MlflowClient
) -> None:
    killed = projection_of(study, home)
    train(killed, study.runs()[0], 0, 2)
    results = results_of(study, 3, 0, 0, 0)
    reconcile(projection_of(study, home), results)
    assert read_runs(Home(folder=home).tracking_uri, study.name)[0].records == results[0].records
    repaired = runs_of(study, client, "seed")
    assert repaired["erm erm seed=0"].info.status == "FINISHED"
    assert len(repaired) == 1


def test_an_epoch_stored_again_at_another_time_stays_one_row(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection = projection_of(study, home)
    run = study.runs()[0]
    record, facts = epoch_of(run, 0)
    train(projection, run, 0)
    later = (record, replace(facts, stored_at_ms=facts.stored_at_ms + 5))
    projection.reconcile_run(RunProgress(run=run, outcome="missing").trained([later]))
    rows = client.get_metric_history(
        runs_of(study, client, "seed")["erm erm seed=0"].info.run_id, "test/error"
    )
    assert [row.timestamp for row in rows] == [facts.stored_at_ms]


def test_a_run_that_contradicts_the_store_is_replaced(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 3, 3, 3)
    reconcile(projection_of(study, home), results)
    wrong = runs_of(study, client, "seed")["erm erm seed=0"].info.run_id
    client.log_batch(wrong, metrics=[Metric("test/error", 0.5, NOON_MS, 1)])
    reconcile(projection_of(study, home), results)
    assert read_runs(Home(folder=home).tracking_uri, study.name)[0].records == results[0].records
    assert client.get_run(wrong).info.lifecycle_stage == "deleted"
    content_of(study, client)


def test_retrained_epochs_show_the_time_of_the_second_training(
    study: Study, home: Path, client: MlflowClient
) -> None:
    first, *others = results_of(study, 3, 3, 3, 3)
    assert first.stage is not None
    later = tuple(replace(f, stored_at_ms=f.stored_at_ms + 5) for f in first.facts)
    again = replace(first, stage=replace(first.stage, facts=later))
    reconcile(projection_of(study, home), [first, *others])
    reconcile(projection_of(study, home), [again, *others])
    run_id = runs_of(study, client, "seed")["erm erm seed=0"].info.run_id
    rows = client.get_metric_history(run_id, "test/error")
    assert [row.timestamp for row in rows] == [facts.stored_at_ms for facts in later]


def test_a_summary_is_reduced_when_the_store_loses_epochs(
    study: Study, home: Path, client: MlflowClient
) -> None:
    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    fewer = results_of(study, 3, 3, 1, 3)
    reconcile(projection_of(study, home), fewer)
    arm = runs_of(study, client, "config")["erm erm"].data
    error = fewer[0].records[-1].metrics["test/error"]
    assert arm.metrics == {}
    assert (arm.tags["n"], arm.tags["test/error"]) == ("1/2", f"{100 * error:.2f} % (1/2)")
    assert read_runs(Home(folder=home).tracking_uri, study.name)[2].records == fewer[2].records


def test_an_arm_with_more_seeds_shows_the_mean_of_all_once_all_are_complete(
    study: Study, home: Path, client: MlflowClient
) -> None:
    def arm() -> tuple[str, str, float]:
        found = runs_of(study, client, "config")["erm erm"]
        return found.info.run_id, found.data.tags["n"], found.data.metrics["test/error_mean"]

    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    run_id, _, of_two = arm()
    more = replace(study, seeds=(0, 1, 2))
    reconcile(projection_of(more, home), results_of(more, 3, 3, 3, 3, 2, 2))
    assert arm() == (run_id, "2/3", of_two)
    complete = results_of(more, 3, 3, 3, 3, 3, 3)
    reconcile(projection_of(more, home), complete)
    errors = [r.records[-1].metrics["test/error"] for r in complete if r.run.arm == "erm"]
    assert arm() == (run_id, "3/3", statistics.fmean(errors))


def test_seeds_outside_the_current_study_stay_in_the_mean(
    study: Study, home: Path, client: MlflowClient
) -> None:
    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    before = content_of(study, client)
    fewer = replace(study, seeds=(1,))
    reconcile(projection_of(fewer, home), results_of(study, 3, 3, 3, 3)[2:])
    changed = content_of(study, client) - before
    assert {name for _, name, *_ in changed} == {"position"}


def test_changed_settings_get_separate_runs(study: Study, home: Path, client: MlflowClient) -> None:
    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    before = content_of(study, client)
    arms = {arm: with_values(config, {"epochs": 2}) for arm, config in study.arms.items()}
    edited = replace(study, arms=arms)
    reconcile(projection_of(edited, home), results_of(edited, 1, 0, 1, 0))
    assert before <= content_of(study, client)
    assert set(runs_of(study, client, "config")) == {
        "erm erm",
        "erm erm (epochs=2)",
        "midpoint midpoint",
        "midpoint midpoint (epochs=2)",
    }
    assert "erm erm (epochs=2) seed=1" in runs_of(study, client, "seed")
    tracked = read_runs(Home(folder=home).tracking_uri, study.name)
    assert sorted(run.params["epochs"] for run in tracked if run.arm == "erm") == [2, 2, 3, 3]


def written_before_configurations_had_names(
    study: Study, home: Path, client: MlflowClient
) -> dict[str, str]:
    """Return the identity of each MLflow run of a finished study, as earlier versions wrote it."""
    (home / "reports").mkdir(exist_ok=True)
    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    projection_of(study, home).log_report(home / "reports", "")
    experiment = client.get_experiment_by_name(study.name)
    found = client.search_runs([experiment.experiment_id])
    for run in found:
        run_id, tags = run.info.run_id, run.data.tags
        if "config_id" in tags:
            client.delete_tag(run_id, "config_id")
        if tags["level"] == "config":
            client.delete_tag(run_id, "seeds")
            client.log_metric(run_id, "test/error_mean", 0.5, NOON_MS, step=2)
        elif tags["level"] == "seed":
            client.set_tag(run_id, "mlflow.runName", f"seed={tags['seed']}")
    return {run.info.run_name: run.info.run_id for run in found}


def test_runs_written_before_configurations_had_names_are_adopted(
    study: Study, home: Path, client: MlflowClient
) -> None:
    before = written_before_configurations_had_names(study, home, client)
    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    projection_of(study, home).log_report(home / "reports", "")
    found = client.search_runs([client.get_experiment_by_name(study.name).experiment_id])
    assert {run.info.run_name: run.info.run_id for run in found} == before
    content_of(study, client)


def test_unnamed_runs_of_other_settings_are_not_changed(
    study: Study, home: Path, client: MlflowClient
) -> None:
    before = written_before_configurations_had_names(study, home, client)
    kept = content_of(study, client, once=False)
    arms = {arm: with_values(config, {"epochs": 2}) for arm, config in study.arms.items()}
    edited = replace(study, arms=arms)
    reconcile(projection_of(edited, home), results_of(edited, 2, 2, 2, 2))
    projection_of(edited, home).log_report(home / "reports", "")
    assert kept <= content_of(study, client, once=False)
    found = client.search_runs([client.get_experiment_by_name(study.name).experiment_id])
    assert len(found) == 2 * len(before)


def test_an_arm_lists_its_training_dataset_once(
    study: Study, home: Path, client: MlflowClient
) -> None:
    for _ in range(2):
        projection = Projection(
            study,
            Home(folder=home).tracking_uri,
            summariser=lambda study, arm: summarise,
            data_checksums={"fashion-mnist": {"train-images": "03af"}, "cifar10": {}},
        )
        reconcile(projection, results_of(study, 3, 3, 3, 3))
    (data,) = runs_of(study, client, "config")["erm erm"].inputs.dataset_inputs
    assert (data.dataset.name, len(data.dataset.digest)) == ("fashion-mnist", 32)
    assert "03af" in data.dataset.source


def test_settings_common_to_all_arms_are_params_of_the_study(
    study: Study, home: Path, client: MlflowClient, tmp_path: Path
) -> None:
    projection_of(study, home).log_report(tmp_path, "| arm |")
    experiment = client.get_experiment_by_name(study.name)
    (sweep,) = client.search_runs([experiment.experiment_id], "tags.level = 'sweep'")
    assert sweep.data.params["epochs"] == "3"
    assert not {"mix.law", "seed"} & sweep.data.params.keys()


def test_runs_of_other_programs_in_the_experiment_are_not_changed(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection = projection_of(study, home)
    reconcile(projection, results_of(study, 3, 3, 3, 3))
    experiment = client.get_experiment_by_name(study.name)
    own = client.create_run(experiment.experiment_id, run_name="my notes").info.run_id
    projection.forget()
    reconcile(projection, results_of(study, 3, 3, 3, 3))
    projection.settle()
    assert client.get_run(own).info.status == "RUNNING"
    assert len(read_runs(Home(folder=home).tracking_uri, study.name)) == 4


def shown(study: Study, client: MlflowClient) -> list[str]:
    """Return the content of MLflow for a study, without the identities of its runs."""
    experiment = client.get_experiment_by_name(study.name)
    found = client.search_runs([experiment.experiment_id])
    names = {run.info.run_id: run.info.run_name for run in found}
    return sorted(
        repr(
            (
                run.info.run_name,
                run.info.status,
                sorted(run.data.params.items()),
                sorted((k, names.get(v, v)) for k, v in run.data.tags.items()),
                [
                    (name, row.step, row.timestamp, row.value)
                    for name in sorted(run.data.metrics)
                    for row in client.get_metric_history(run.info.run_id, name)
                ],
            )
        )
        for run in found
    )


TAGS = {
    "seed": (
        "level", "run_key", "arm", "seed", "position", "outcome", "study", "step", "predictions",
        "mlflow.parentRunId", "mlflow.runName",
    ),
    "config": ("level", "arm", "config_id", "outcome", "n", "seeds", "mlflow.runName"),
    "sweep": ("level", "study", "mlflow.runName"),
}  # fmt: skip
FREE = {
    ("seed", "step"), ("config", "arm"), ("config", "config_id"), ("config", "mlflow.runName"),
    ("sweep", "study"), ("sweep", "mlflow.runName"),
}  # fmt: skip
"""Tags that may have any value: that of another arm, or of a renamed study."""


@pytest.mark.parametrize("level", TAGS)
@pytest.mark.parametrize("value", [None, "\N{SNOWMAN}"])
def test_a_run_with_a_lost_identifying_tag_is_restored_without_a_duplicate(
    study: Study, home: Path, client: MlflowClient, level: str, value: str | None
) -> None:
    (home / "reports").mkdir(exist_ok=True)
    results = results_of(study, 3, 2, 3, 3)

    def bring() -> list[str]:
        projection = projection_of(study, home)
        reconcile(projection, results)
        projection.log_report(home / "reports", "")
        return shown(study, client)

    before = bring()
    for tag in TAGS[level]:
        run = next(iter(runs_at(study, client, level)))
        if value is None:
            client.delete_tag(run.info.run_id, tag)
        elif (level, tag) not in FREE:
            client.set_tag(run.info.run_id, tag, value)
        assert bring() == before, tag


def runs_at(study: Study, client: MlflowClient, level: str) -> list[Any]:
    experiment = client.get_experiment_by_name(study.name)
    filters = f"tags.level = '{level}' AND attributes.status = 'FINISHED'"
    found: list[Any] = client.search_runs([experiment.experiment_id], filters)
    return found


def last_numbers(study: Study, client: MlflowClient) -> dict[str, Any]:
    runs = {**runs_of(study, client, "config"), **runs_of(study, client, "seed")}
    return {name: (run.info.status, run.data.metrics) for name, run in runs.items()}


@pytest.mark.parametrize("tag", ["run_key", "seed", "outcome", "position", "arm", "level"])
def test_a_lost_tag_of_a_run_outside_the_study_does_not_affect_other_runs(
    study: Study, home: Path, client: MlflowClient, tag: str
) -> None:
    results = results_of(study, 3, 3, 3, 3)
    reconcile(projection_of(study, home), results)
    before = last_numbers(study, client)
    run = runs_of(study, client, "seed")["erm erm seed=0"]
    client.delete_tag(run.info.run_id, tag)
    fewer = replace(study, seeds=(1,))
    reconcile(projection_of(fewer, home), results[2:])
    assert "erm erm seed=0" not in runs_of(study, client, "seed")
    assert len(read_runs(Home(folder=home).tracking_uri, study.name)) == 3
    reconcile(projection_of(study, home), results)
    assert last_numbers(study, client) == before


def test_a_run_outside_the_study_without_metrics_is_not_counted(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 3, 3, 3)
    reconcile(projection_of(study, home), results)
    run = runs_of(study, client, "seed")["erm erm seed=0"]
    database = database_file(Home(folder=home).tracking_uri)
    assert database is not None
    clear_metrics(database, run.info.run_id)
    reconcile(projection_of(replace(study, seeds=(1,)), home), results[2:])
    assert runs_of(study, client, "config")["erm erm"].data.tags["n"] == "1/1"
    reconcile(projection_of(study, home), results)
    assert runs_of(study, client, "config")["erm erm"].data.tags["n"] == "2/2"


def test_a_run_of_another_program_with_project_tags_is_not_changed(
    study: Study, home: Path, client: MlflowClient
) -> None:
    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    experiment = client.get_experiment_by_name(study.name)
    tags = {"level": "debug", "arm": "erm", "seed": "0", "study": study.name}
    arm = runs_of(study, client, "config")["erm erm"].info.run_id
    for more in ({}, {PARENT_TAG: arm}):
        own = client.create_run(experiment.experiment_id, tags=tags | more).info.run_id
        reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
        assert client.get_run(own).info.lifecycle_stage == "active"
        assert client.get_run(own).data.tags.items() >= tags.items()


def test_a_run_created_twice_after_a_lost_answer_is_reduced_to_one(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, 3, 3, 3, 3)
    reconcile(projection_of(study, home), results)
    first = runs_of(study, client, "seed")["erm erm seed=0"]
    client.create_run(first.info.experiment_id, tags=first.data.tags)
    reconcile(projection_of(study, home), results)
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


def test_an_oracle_arm_and_its_runs_have_an_oracle_tag(
    study: Study, home: Path, client: MlflowClient
) -> None:
    arms = {**study.arms, "erm": with_values(study.arms["erm"], {"data.oracle": True})}
    leaking = replace(study, arms=arms)
    reconcile(projection_of(leaking, home), results_of(leaking, 3, 3, 3, 3))
    found = {**runs_of(leaking, client, "config"), **runs_of(leaking, client, "seed")}
    told = {name for name, run in found.items() if run.data.tags.get("oracle") == "True"}
    assert told == {name for name in found if name.startswith("erm")}
    assert len(told) == 3


@pytest.mark.filterwarnings("ignore")  # what torch.export and MLflow warn of is their own
def test_a_trained_network_is_logged_once_and_can_be_loaded(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainConfig(
        data=DataConfig(name="digits", num_train=100), model=Mlp(hidden=(8,)), epochs=1,
        batch_size=50,
    )  # fmt: skip
    study = Study(
        name="small", description="", arms={"erm": config}, seeds=(0,), baseline="erm", source=""
    )
    projection = projection_of(study, home)
    results = results_of(study, 1)
    reconcile(projection, results)
    trained = TrainingState.initial(config, CATALOG["digits"], torch.device("cpu"))
    for again in (projection, projection_of(study, home)):
        again.log_model(study.runs()[0], trained.to_bytes())
    uri = Home(folder=home).tracking_uri
    client = MlflowClient(uri)
    (run,) = runs_of(study, client, "seed").values()
    experiment = client.get_experiment_by_name(study.name)
    assert experiment is not None
    (model,) = client.search_logged_models([experiment.experiment_id])
    assert (model.source_run_id, str(model.status)) == (run.info.run_id, "READY")
    assert run.data.tags["model"] == f"models:/{model.model_id}"
    assert [output.model_id for output in run.outputs.model_outputs] == [model.model_id]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    loaded = mlflow.pytorch.load_model(run.data.tags["model"])
    images = torch.randn(7, 1, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(loaded(images), trained.network.eval()(images))


def test_a_network_that_cannot_be_exported_is_logged_without_an_error(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = TrainConfig(data=DataConfig(name="digits"), model=Mlp(), epochs=1, batch_size=50)
    study = Study(
        name="untraceable",
        description="",
        arms={"erm": config},
        seeds=(0,),
        baseline="erm",
        source="",
    )  # fmt: skip
    projection = projection_of(study, home)
    reconcile(projection, results_of(study, 1))
    projection.log_model(study.runs()[0], b"no state")
    assert "cannot be exported: 8 bytes are not a training state of this run" in caplog.text
    (run,) = runs_of(study, MlflowClient(Home(folder=home).tracking_uri), "seed").values()
    assert "model" not in run.data.tags
