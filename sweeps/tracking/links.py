"""Links: links to the pages of a study in MLflow, and the views that these links open.

Without a view, MLflow opens a page for another use (GenAI) and shows no metric columns. A view is a
filter, a sort order and columns, stored in a tag of the experiment; a link can name it. The format
is internal to MLflow and may change with its version; `tests/smoke/test_pages.py` tests the pages
in a browser.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

ADDRESS = "http://127.0.0.1:5000"
"""Default address of `mixsweep ui`."""

PRIMARY_TAG = "mlflow.experiment.primaryMetric.name"
"""Tag of an experiment with the name of the metric by which its runs are compared."""
PRIMARY_IS_GREATER_BETTER_TAG = "mlflow.experiment.primaryMetric.greaterIsBetter"

_VIEW_TAG = "mlflow.sharedViewState."
_ARMS, _SEEDS = "arms", "seeds"
_CHARTS = "&compareRunsMode=CHART"
_MEANS = "means"
_MAX_DRAWN = 20
"""Largest number of arms in a chart."""
_WIDE, _NARROW = 150, 70
"""Widths of columns in pixels."""
_LETTER = 7
"""Approximate width of a letter in a column heading, in pixels."""


VIEW_TAG = f"{_VIEW_TAG}{_ARMS}"
"""Tag of an experiment with the view of its table of arms; only mixsweep sets it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Links:
    """Links to the pages of a study in MLflow, which commands print and reports show."""

    arms: str
    """Link to the table of arms, sorted by their means of the headline metric."""
    seeds: str
    """Link to the learning curves of the runs."""


def study_links(
    experiments: Mapping[str, tuple[str, Mapping[str, str]]], address: str = ADDRESS
) -> dict[str, Links]:
    """Return the links to the MLflow pages of each study, by the study's name.

    Args:
        experiments: Id and tags of each experiment, by name
            (`sweeps.tracking.connection.experiments`). Experiments of other programs are left out.
        address: Address of MLflow's pages.
    """
    found = {}
    for name, (experiment_id, tags) in experiments.items():
        if PRIMARY_TAG not in tags:
            continue  # an experiment of another program
        page = _page(address, experiment_id)
        is_rising = tags.get(PRIMARY_IS_GREATER_BETTER_TAG) != "True"
        arms = {
            "searchFilter": _of_level("config"),
            "orderByKey": _column("metrics", tags[PRIMARY_TAG]),
            "orderByAsc": str(is_rising).lower(),
        }
        seeds = {"searchFilter": _of_level("seed")}
        found[name] = Links(
            arms=page + _query(tags, _ARMS, arms),
            seeds=page + _query(tags, _SEEDS, seeds) + _CHARTS,
        )
    return found


def links_of(experiment_id: str, address: str = ADDRESS) -> Links:
    """Return the links to the pages of a study in MLflow, from the id of its experiment.

    The experiment must have the tags that `view_tags` returns.
    """
    page = _page(address, experiment_id)
    shared = (f"{page}&viewStateShareKey={key}" for key in (_ARMS, _SEEDS))
    return Links(arms=next(shared), seeds=next(shared) + _CHARTS)


def view_tags(
    *,
    metric: str,
    is_lower_better: bool,
    metrics: Sequence[str],
    results: Sequence[str],
    params: Sequence[str],
) -> dict[str, str]:
    """Return experiment tags that store two MLflow views: a table of arms, and curves of the runs.

    Args:
        metric: The metric by which arms are sorted.
        is_lower_better: If True, the lowest value comes first.
        metrics: Metrics of the arms. Charts of the means are shown, others are hidden.
        results: Names of the arms' tags that contain results as text. The first tag, with results
            of the compared metric, becomes the first column.
        params: Dotted paths of the settings in which the arms differ; each becomes a column.
    """
    columns = {
        **dict.fromkeys((_column("tags", name) for name in results[:1]), _WIDE),
        _column("metrics", metric): max(_WIDE, _LETTER * len(metric)),
        _column("tags", "n"): _NARROW,
        **dict.fromkeys((_column("params", path) for path in params), _WIDE),
        **dict.fromkeys((_column("tags", name) for name in results[1:]), _WIDE),
    }
    arms = {
        "searchFilter": _of_level("config"),
        "orderByKey": _column("metrics", metric),
        "orderByAsc": is_lower_better,
        "selectedColumns": list(columns),
        "columnOrder": list(columns),
        "columnWidths": columns,
        "compareRunCharts": [_chart(name, is_drawn=name.endswith("_mean")) for name in metrics],
        "compareRunSections": [{"uuid": _MEANS, "name": "mean over seeds", "display": True}],
    }
    seeds = {
        "searchFilter": _of_level("seed"),
        "orderByKey": _column("attributes", "Created"),
        "orderByAsc": True,
        "selectedColumns": [_column("params", path) for path in params],
        "runsHiddenMode": "SHOW_ALL",
    }
    return {f"{_VIEW_TAG}{key}": _packed(view) for key, view in ((_ARMS, arms), (_SEEDS, seeds))}


_DEFAULT_VIEW: Mapping[str, Any] = {
    "startTime": "ALL",
    "lifecycleFilter": "Active",
    "datasetsFilter": [],
    "modelVersionFilter": "All Runs",
    "columnOrder": [],
    "columnWidths": {},
    "runsExpanded": {},
    "runsPinned": [],
    "runsHidden": [],
    "runsVisibilityMap": {},
    "runsHiddenMode": "FIRST_20_RUNS",
    "viewMaximized": False,
    "runListHidden": False,
    "isAccordionReordered": False,
    "useGroupedValuesInCharts": True,
    "hideEmptyCharts": True,
    "groupBy": None,
    "groupsExpanded": {},
    "autoRefreshEnabled": True,
    "globalLineChartConfig": {
        "xAxisKey": "step",
        "lineSmoothness": 0,
        "selectedXAxisMetricKey": "",
    },
}


def _page(address: str, experiment_id: str) -> str:
    return f"{address}/#/experiments/{experiment_id}/runs?workflowType=machine_learning"


def _query(tags: Mapping[str, str], key: str, otherwise: Mapping[str, str]) -> str:
    """Return the part of a link that selects a stored view, or its settings if none is stored."""
    named = {"viewStateShareKey": key} if f"{_VIEW_TAG}{key}" in tags else otherwise
    return "".join(f"&{name}={quote(value, safe='')}" for name, value in named.items())


def _chart(metric: str, *, is_drawn: bool) -> dict[str, Any]:
    """Return the settings of a chart over epochs; MLflow draws its own for metrics without one."""
    return {
        "uuid": metric,
        "type": "LINE",
        "metricKey": metric,
        "metricSectionId": _MEANS,
        "deleted": not is_drawn,
        "isGenerated": False,
        "runsCountToCompare": _MAX_DRAWN,
        "xAxisKey": "step",
        "xAxisScaleType": "linear",
        "scaleType": "linear",
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "selectedXAxisMetricKey": "",
        "lineSmoothness": 0,
        "range": {},
        "ignoreOutliers": False,
        "useGlobalXaxisKey": True,
        "useGlobalLineSmoothing": True,
    }


def _packed(view: Mapping[str, Any]) -> str:
    content = json.dumps({**_DEFAULT_VIEW, **view}).encode()
    return "deflate;" + base64.b64encode(zlib.compress(content)).decode()


def _of_level(level: str) -> str:
    return f"tags.level = '{level}'"


def _column(kind: str, name: str) -> str:
    return f"{kind}.`{name}`"
