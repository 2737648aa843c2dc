"""Published results: statements of the README are computed again from the committed files."""

import re

import numpy as np
import pytest
import scipy.stats

from docs.pages.published import PUBLISHED
from mixup_core.config.written_forms import flatten
from sweeps.reading.study_file import load_study
from tests.reports.test_recomputed import by_seed, rows_of

ROOT = PUBLISHED.parents[1]


def test_a_claim_of_the_readme_is_a_published_verdict_that_holds() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    links = re.findall(r"\[([^]]+)\]\((reports/published/[^)]*verdicts\.csv)\)", readme)
    assert links
    for says, file in links:
        assert (says, "holds") in {(row["says"], row["verdict"]) for row in rows_of(ROOT / file)}


RESULTS = {
    "Uniform mixup has lower test error than ERM": ("quickstart", "uniform", "erm", -1),
    "These runs do not decide whether midpoint mixup is better than ERM": (
        "quickstart",
        "midpoint",
        "erm",
        0,
    ),
    "midpoint has higher test error than ERM": ("readouts", "midpoint-cosine", "erm-cosine", 1),
}
"""Results that the README states: study, two arms, and the sign of their difference (0: not
significant).
"""


@pytest.mark.parametrize("sentence", RESULTS)
def test_a_result_in_the_readme_agrees_with_scipy_on_the_runs(sentence: str) -> None:
    study, arm, against, sign = RESULTS[sentence]
    assert sentence in " ".join((ROOT / "README.md").read_text().split())
    runs = rows_of(PUBLISHED / study / "runs.csv")
    ours, theirs = (by_seed(runs, name, "test/error") for name in (arm, against))
    test = scipy.stats.ttest_rel([ours[s] for s in ours], [theirs[s] for s in ours])
    tests = 2 if study == "quickstart" else 4
    assert (np.sign(test.statistic) if tests * test.pvalue <= 0.05 else 0) == sign


def test_every_published_report_that_the_readme_links_to_backs_a_stated_result() -> None:
    """A new result needs a line in `RESULTS`."""
    text = " ".join((ROOT / "README.md").read_text().split())
    links = re.findall(r"(?<!!)\[([^]]+)\]\((reports/published/[^)]+\.(?:csv|md))\)", text)
    stated = [says for says, file in links if not file.endswith("claims.md")]
    assert stated
    assert set(stated) <= RESULTS.keys()


def test_tuned_arms_with_equal_budget_are_winners_of_searches_of_equal_size() -> None:
    study, paths = load_study("equal-budget"), ("optimizer.lr", "optimizer.weight_decay")
    tried = {}
    for method in ("erm", "uniform"):
        rows = rows_of(PUBLISHED / f"equal-budget-{method}" / "points.csv")
        points = [row for row in rows if row["state"] == "complete"]
        tried[method] = {tuple(row[path] for path in (*paths, "n")) for row in points}
        (winner,) = (row for row in points if row["selected"] == "true")
        values = flatten(study.arms[f"{method}-tuned"])
        assert [values[path] for path in paths] == [float(winner[path]) for path in paths]
    assert tried["erm"] == tried["uniform"]
    assert len(tried["erm"]) == 10
