import base64
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from sweeps.machine.home import Home
from sweeps.study.study import Study
from sweeps.tracking.connection import experiments
from sweeps.tracking.links import study_links
from tests.sweeps.tracked import log_of, results_of, write


def view_of(tags: Mapping[str, str], key: str) -> dict[str, Any]:
    packed = tags[f"mlflow.sharedViewState.{key}"].removeprefix("deflate;")
    view: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return view


def test_a_study_is_linked_with_its_views_sorted_by_the_headline(
    study: Study, home: Path, client: MlflowClient
) -> None:
    write(log_of(study, home), results_of(study, 3, 3, 3, 3))
    experiment = client.get_experiment_by_name(study.name)
    tags = experiment.tags
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
    assert view_of(tags, "seeds")["searchFilter"] == "tags.level = 'seed'"
    assert tags["mlflow.experiment.primaryMetric.name"] == "test/error_mean"
    assert tags["mlflow.experiment.primaryMetric.greaterIsBetter"] == "False"
    found = study_links(experiments(Home(folder=home).tracking_uri), "http://127.0.0.1:5001")
    page = f"http://127.0.0.1:5001/#/experiments/{experiment.experiment_id}/runs"
    page += "?workflowType=machine_learning"
    assert found[study.name].arms == f"{page}&viewStateShareKey=arms"
    assert found[study.name].seeds == f"{page}&viewStateShareKey=seeds&compareRunsMode=CHART"
