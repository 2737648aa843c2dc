from collections.abc import Sequence

import pytest

from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.drawn import draw, numbers_of
from tests.reports.synthetic import AT_A_BOUND, at_a_bound, make_study


def test_final_numbers_contain_every_seed_and_the_paired_differences(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    lines = numbers_of(draw(study, results)["final_values"])
    means = {(line["shown"], line["arm"]): float(line["mean"]) for line in lines if line["mean"]}
    rows = {row.arm: row for row in tabulate(study, results).rows}
    assert rows["midpoint"].compared is not None
    assert means["difference", "midpoint"] == rows["midpoint"].compared.comparison.difference
    assert ("difference", "erm") not in means
    assert sum(line["shown"] == "value" and line["seed"] != "" for line in lines) == 15


@pytest.mark.parametrize("errors", AT_A_BOUND)
def test_the_drawn_interval_equals_the_interval_in_the_table(errors: Sequence[float]) -> None:
    study = make_study()
    results = at_a_bound(study, errors)
    lines = numbers_of(draw(study, results)["final_values"])
    drawn = {
        line["arm"]: (float(line["ci_low"]), float(line["ci_high"]))
        for line in lines
        if line["shown"] == "value" and line["mean"]
    }
    told = {row.arm: row.summaries["test/error"] for row in tabulate(study, results).rows}
    assert drawn == {arm: (summary.ci_low, summary.ci_high) for arm, summary in told.items()}
    assert all(0 <= low < high <= 1 for low, high in drawn.values())
