"""Links to the pages of a study in MLflow, and the views that these links open.

Without a view, MLflow opens a page for another use (GenAI) and shows no metric columns. A view is a
filter, a sort order and columns, stored in a tag of the experiment; a link names it. The format is
internal to MLflow and may change with its version; `tests/smoke/test_pages.py` tests the pages in a
browser.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Frozen: names of tags. `mixsweep ui` would print no links to studies of earlier versions;
# tests/sweeps/tracking/test_links.py fails.
_VIEW = "mlflow.sharedViewState."
VIEW_TAG = f"{_VIEW}arms"
"""Tag of an experiment with the view of its table of arms; only mixsweep sets it."""
_PRIMARY = "mlflow.experiment.primaryMetric."
_DEFAULTS: Mapping[str, Any] = {
    "startTime": "ALL", "lifecycleFilter": "Active", "modelVersionFilter": "All Runs",
    "runsHiddenMode": "SHOW_ALL", "groupBy": None, "viewMaximized": False, "runListHidden": False,
    "isAccordionReordered": False, "useGroupedValuesInCharts": True, "hideEmptyCharts": True,
    "autoRefreshEnabled": True, "globalLineChartConfig": {
        "xAxisKey": "step", "lineSmoothness": 0, "selectedXAxisMetricKey": "",
    },
    "datasetsFilter": [], "columnOrder": [], "runsPinned": [], "runsHidden": [],
    "columnWidths": {}, "runsExpanded": {}, "runsVisibilityMap": {}, "groupsExpanded": {},
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Links:
    """Links to the pages of a study in MLflow."""

    arms: str
    """Link to the table of arms, sorted by their means of the headline metric."""
    seeds: str
    """Link to the learning curves of the runs."""


def study_links(
    experiments: Mapping[str, tuple[str, Mapping[str, str]]], address: str
) -> dict[str, Links]:
    """Return the links to the MLflow pages of each study, by the study's name."""
    links = {}
    for name, (experiment_id, tags) in experiments.items():
        if VIEW_TAG in tags:
            page = f"{address}/#/experiments/{experiment_id}/runs?workflowType=machine_learning"
            arms, seeds = (f"{page}&viewStateShareKey={key}" for key in ("arms", "seeds"))
            links[name] = Links(arms=arms, seeds=f"{seeds}&compareRunsMode=CHART")
    return links


def view_tags(
    *, metric: str, is_lower_better: bool, results: Sequence[str], params: Sequence[str]
) -> dict[str, str]:
    """Return experiment tags with two views: arms, sorted by `metric`, and curves of runs."""
    settings = [f"params.`{path}`" for path in params]
    columns = [
        *(f"tags.`{name}`" for name in results[:1]),
        f"metrics.`{metric}`",
        "tags.`n`",
        *settings,
        *(f"tags.`{name}`" for name in results[1:]),
    ]
    arms = {
        "searchFilter": "tags.level = 'config'",
        "orderByKey": f"metrics.`{metric}`",
        "orderByAsc": is_lower_better,
        "selectedColumns": columns,
        "columnOrder": columns,
        "columnWidths": dict.fromkeys(columns[:2], 200),
    }
    seeds = {
        "searchFilter": "tags.level = 'seed'",
        "orderByKey": "attributes.`Created`",
        "orderByAsc": True,
        "selectedColumns": settings,
    }
    return {
        f"{_PRIMARY}name": metric,
        f"{_PRIMARY}greaterIsBetter": str(not is_lower_better),
        **{f"{_VIEW}{key}": _packed(view) for key, view in (("arms", arms), ("seeds", seeds))},
    }


def _packed(view: Mapping[str, Any]) -> str:
    content = json.dumps({**_DEFAULTS, **view}).encode()
    return "deflate;" + base64.b64encode(zlib.compress(content)).decode()
