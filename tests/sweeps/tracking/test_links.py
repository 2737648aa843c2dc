import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from mixup_core.config.building import with_values
from sweeps.machine.home import Home
from sweeps.study.readouts import MeanOfLast
from sweeps.study.study import Study
from sweeps.tracking import connection
from sweeps.tracking.connection import experiment_id, experiments
from sweeps.tracking.experiment import Experiment
from sweeps.tracking.links import links_of, study_links
from tests.damages import DAMAGES
from tests.sweeps.tracked import projection_of, reconcile, results_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"
)


def view_of(tags: Mapping[str, str], key: str) -> dict[str, Any]:
    packed = tags[f"mlflow.sharedViewState.{key}"].removeprefix("deflate;")
    view: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return view


def test_the_view_of_arms_is_sorted_by_the_headline_and_shows_differing_settings(
    study: Study, home: Path, client: MlflowClient
) -> None:
    projection = projection_of(study, home)
    reconcile(projection, results_of(study, 3, 3, 3, 3))
    projection.settle()
    tags = client.get_experiment_by_name(study.name).tags
    arms = view_of(tags, "arms")
    assert arms["searchFilter"] == "tags.level = 'config'"
    assert (arms["orderByKey"], arms["orderByAsc"]) == ("metrics.`test/error_mean`", True)
    assert arms["selectedColumns"] == [
        "tags.`test/error`",
        "metrics.`test/error_mean`",
        "tags.`n`",
        "params.`mix.law`",
        "tags.`train/loss`",
    ]
    drawn = [chart["metricKey"] for chart in arms["compareRunCharts"] if not chart["deleted"]]
    assert drawn == ["test/error_mean", "train/loss_mean"]
    assert view_of(tags, "seeds")["searchFilter"] == "tags.level = 'seed'"
    assert tags["mlflow.experiment.primaryMetric.name"] == "test/error_mean"
    assert tags["mlflow.experiment.primaryMetric.greaterIsBetter"] == "False"


def test_arms_are_sorted_by_the_read_out_of_their_study(
    study: Study, home: Path, client: MlflowClient
) -> None:
    reading = replace(study, readout=MeanOfLast(evaluations=2))
    results = results_of(reading, 3, 3, 3, 3)
    projection = projection_of(reading, home)
    reconcile(projection, results)
    projection.settle()
    experiment = client.get_experiment_by_name(study.name)
    name = "test/error mean of the last 2 evaluations"
    arms = view_of(experiment.tags, "arms")
    assert arms["orderByKey"] == f"metrics.`{name}`"
    assert arms["selectedColumns"][1] == f"metrics.`{name}`"
    assert study_links(experiments(Home(folder=home).tracking_uri))[study.name].arms
    runs = client.search_runs(
        [experiment.experiment_id], "tags.level = 'config'", order_by=[f"metrics.`{name}`"]
    )
    assert len(runs) == 2
    for run in runs:
        value = run.data.metrics[name]
        assert run.data.tags["test/error"] == f"{100 * value:.2f} %"
        assert value != run.data.metrics["test/error_mean"]
    assert runs[0].data.metrics[name] < runs[1].data.metrics[name]


def test_settings_that_differ_between_arms_of_one_name_are_columns(
    study: Study, home: Path, client: MlflowClient
) -> None:
    reconcile(projection_of(study, home), results_of(study, 3, 3, 3, 3))
    arms = {arm: with_values(config, {"epochs": 2}) for arm, config in study.arms.items()}
    other = projection_of(replace(study, arms=arms), home)
    reconcile(other, results_of(replace(study, arms=arms), 2, 2, 2, 2))
    other.settle()
    tags = client.get_experiment_by_name(study.name).tags
    assert "params.`epochs`" in view_of(tags, "arms")["selectedColumns"]


def test_a_study_is_linked_with_its_views(study: Study, home: Path, client: MlflowClient) -> None:
    projection_of(study, home).settle()
    number = client.get_experiment_by_name(study.name).experiment_id
    links = study_links(experiments(Home(folder=home).tracking_uri), "http://127.0.0.1:5001")[
        study.name
    ]
    page = f"http://127.0.0.1:5001/#/experiments/{number}/runs?workflowType=machine_learning"
    assert links.arms == f"{page}&viewStateShareKey=arms"
    assert links.seeds == f"{page}&viewStateShareKey=seeds&compareRunsMode=CHART"
    assert experiment_id(Home(folder=home).tracking_uri, study.name) == number
    assert links_of(number, "http://127.0.0.1:5001") == links


def test_a_study_without_stored_views_is_linked_with_filter_and_order(
    study: Study, home: Path, client: MlflowClient
) -> None:
    number = client.create_experiment(study.name)
    client.set_experiment_tag(number, "mlflow.experiment.primaryMetric.name", "test/error_mean")
    links = study_links(experiments(Home(folder=home).tracking_uri))[study.name]
    assert links.arms.endswith(
        "&searchFilter=tags.level%20%3D%20%27config%27"
        "&orderByKey=metrics.%60test%2Ferror_mean%60&orderByAsc=true"
    )


def test_experiments_of_other_programs_are_not_linked(
    study: Study, home: Path, client: MlflowClient
) -> None:
    client.create_experiment(study.name)
    assert study.name not in study_links(experiments(Home(folder=home).tracking_uri))


def test_a_home_without_a_database_has_no_links(tmp_path: Path) -> None:
    assert study_links(experiments(Home(folder=tmp_path).tracking_uri)) == {}
    assert experiment_id(Home(folder=tmp_path).tracking_uri, "digits") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", sorted(DAMAGES.keys() - {"unreadable", "bit flipped"}))
def test_a_damaged_or_empty_database_has_no_experiment_and_is_not_changed(
    study: Study, tmp_path: Path, damage: str
) -> None:
    here, database = Home(folder=tmp_path), tmp_path / "mlflow.db"
    Experiment.open(here.tracking_uri, study.name, artifact_location=here.artifact_location)
    DAMAGES[damage](database)
    before = database.read_bytes() if database.is_file() else None
    assert experiment_id(here.tracking_uri, study.name) is None
    assert (database.read_bytes() if database.is_file() else None) == before


def test_an_experiment_in_the_trash_has_no_id(
    study: Study, home: Path, client: MlflowClient
) -> None:
    number = client.create_experiment(study.name)
    uri = Home(folder=home).tracking_uri
    assert experiment_id(uri, study.name) == number
    client.delete_experiment(number)
    assert experiment_id(uri, study.name) is None
    assert experiment_id("http://127.0.0.1:9", study.name) is None


@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_experiment_of_another_program_has_no_id(
    study: Study, home: Path, client: MlflowClient, is_deleted: bool
) -> None:
    number = client.create_experiment(study.name)
    run = client.create_run(number, tags={"level": "seed"})
    if is_deleted:
        client.delete_run(run.info.run_id)
    assert experiment_id(Home(folder=home).tracking_uri, study.name) is None


def test_mlflow_that_refuses_a_key_of_its_environment_gives_no_id(
    study: Study, home: Path, client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = client.create_experiment(study.name)
    uri = Home(folder=home).tracking_uri
    assert experiment_id(uri, study.name) == number

    def refused(uri: str) -> MlflowClient:
        raise ValueError("Fernet key must be 32 url-safe base64-encoded bytes.")

    monkeypatch.setattr(connection, "connect", refused)
    assert experiment_id(uri, study.name) is None
