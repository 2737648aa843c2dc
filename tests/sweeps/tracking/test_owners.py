"""Owners: stores that share an MLflow server do not change runs of each other, or of strangers."""

from pathlib import Path

from mlflow import MlflowClient

from sweeps.machine.home import Home
from sweeps.study.study import Study
from sweeps.tracking.logged_run import OWNER_TAG
from sweeps.tracking.projection import Projection
from tests.sweeps.tracked import projection_of, reconcile, results_of, summarise


def shared(study: Study, home: Path, owner: str) -> Projection:
    uri, place = Home(folder=home).tracking_uri, Home(folder=home).artifact_location
    return Projection(
        study, uri, summariser=lambda study, arm: summarise, artifact_location=place, owner=owner
    )


def runs(study: Study, client: MlflowClient) -> dict[str, dict[str, object]]:
    experiment = client.get_experiment_by_name(study.name)
    found = client.search_runs([experiment.experiment_id], run_view_type=3)
    return {
        run.info.run_id: {"tags": run.data.tags, "stage": run.info.lifecycle_stage}
        | {"metrics": run.data.metrics, "status": run.info.status}
        for run in found
    }


def of(owner: str | None, found: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    return {
        key: run
        for key, run in found.items()
        if run["tags"].get(OWNER_TAG) == owner  # type: ignore[attr-defined]
    }


def test_two_stores_do_not_change_each_others_runs(
    study: Study, home: Path, client: MlflowClient
) -> None:
    numbers = [3] * len(study.runs())
    reconcile(shared(study, home, "a"), results_of(study, *numbers))
    first = runs(study, client)
    assert set(of("a", first)) == set(first)
    reconcile(shared(study, home, "b"), results_of(study, *[2] * len(numbers)))
    for owner in ("a", "b", "a"):
        epochs = 3 if owner == "a" else 2
        reconcile(shared(study, home, owner), results_of(study, *[epochs] * len(numbers)))
    after = runs(study, client)
    assert of("a", after) == first
    assert len(of("b", after)) == len(first)
    assert all(run["stage"] == "active" for run in after.values())


def test_a_run_of_another_program_with_level_seed_is_not_deleted(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, *[3] * len(study.runs()))
    reconcile(projection_of(study, home), results)
    experiment = client.get_experiment_by_name(study.name).experiment_id
    strangers = [
        client.create_run(experiment, tags={"level": "seed", "arm": "erm", "seed": "0"}),
        client.create_run(experiment, tags={"level": "config", "arm": "erm"}),
        client.create_run(experiment, tags={"level": "sweep"}),
    ]
    before = {run.info.run_id: runs(study, client)[run.info.run_id] for run in strangers}
    for owner in ("home", "a"):
        again = shared(study, home, owner)
        reconcile(again, results)
        again.settle()
    after = runs(study, client)
    assert {key: after[key] for key in before} == before


def test_runs_without_an_owner_are_adopted_only_if_their_content_is_equal(
    study: Study, home: Path, client: MlflowClient
) -> None:
    results = results_of(study, *[3] * len(study.runs()))
    reconcile(projection_of(study, home), results)
    for key in runs(study, client):
        client.delete_tag(key, OWNER_TAG)
    before = runs(study, client)
    reconcile(shared(study, home, "a"), results)
    assert set(runs(study, client)) == set(before)
    assert set(of("a", runs(study, client))) == set(before)
