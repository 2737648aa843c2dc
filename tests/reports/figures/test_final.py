from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.drawn import draw, numbers_of


def test_final_numbers_hold_every_seed_and_the_paired_differences(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    lines = numbers_of(draw(study, results)["final_values"])
    means = {(line["shown"], line["arm"]): float(line["mean"]) for line in lines if line["mean"]}
    rows = {row.arm: row for row in tabulate(study, results).rows}
    assert rows["midpoint"].compared is not None
    assert means["difference", "midpoint"] == rows["midpoint"].compared.comparison.difference
    assert ("difference", "erm") not in means
    assert sum(line["shown"] == "value" and line["seed"] != "" for line in lines) == 15
