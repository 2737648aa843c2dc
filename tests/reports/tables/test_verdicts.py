import csv
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats

from reports.numbers.predicted import MEASURES, gather_predictions
from reports.numbers.runs import arrange
from reports.tables.table import tabulate
from reports.tables.verdicts import Verdict, verdict_table, verdicts_csv, verdicts_of
from sweeps.state.results import RunResult
from sweeps.study.claims import Claim, Comparison, Relation
from sweeps.study.readouts import Rise
from sweeps.study.study import Study
from tests.reports.decay import decay_study, decayed
from tests.reports.synthetic import ended, finish, make_study
from tests.reports.synthetic_predictions import reader


def claim(
    relation: Relation,
    left: str = "uniform",
    right: str | float = "erm",
    metric: str = "test/error",
    **more: Any,
) -> Claim:
    more |= {"metric": metric, relation: (left, right)}
    return Claim(
        says=f"{left} {relation} {right}", source="a paper, table 1",
        that=Comparison(**more),
    )  # fmt: skip


def judged(study: Study, *claims: Claim, results: list[RunResult] | None = None) -> list[Verdict]:
    study = replace(study, claims=claims)
    results = ended(study, {}) if results is None else results
    return list(verdicts_of(study, arrange(study, results), tabulate(study, results)))


# uniform minus erm is -2.94 points, its interval over one comparison [-3.92, -1.96]
@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (claim("less"), "holds"),
        (claim("greater"), "fails"),
        (claim("at_least"), "fails"),
        (claim("at_most"), "holds"),
        (claim("within", margin=0.06), "holds"),
        (claim("within", margin=0.03), "undecided"),
        (claim("within", margin=0.01), "fails"),
        (claim("less", right=0.3), "holds"),
        (claim("at_least", right=0.196), "holds"),
        (claim("greater", right=0.196), "undecided"),
        (claim("within", right=0.2, margin=0.03), "holds"),
        (claim("less", left="erm", right="erm", metric="test/nll"), "undecided"),
    ],
)
def test_a_claim_is_judged_by_its_interval(made: Claim, verdict: str) -> None:
    (found,) = judged(make_study(), made)
    assert found.verdict == verdict
    assert found.n == 5


def test_a_claim_in_a_read_out_of_its_own_is_a_family_of_its_own_and_says_so() -> None:
    rises = claim("greater", right=-0.001, readout=Rise())
    study = replace(make_study(), claims=(claim("less"), rises))
    results = [finish(run) for run in study.runs()]
    table = tabulate(study, results)
    plain = tabulate(replace(study, claims=()), results)
    assert table.family.size == plain.family.size == 2
    verdicts = verdicts_of(study, arrange(study, results), table)
    by_hand = [
        result.records[-1].metrics["test/error"]
        - min(record.metrics["test/error"] for record in result.records)
        for result in results
        if result.run.arm == "uniform"
    ]
    assert verdicts[1].value == pytest.approx(sum(by_hand) / len(by_hand))
    assert verdicts[1].n == len(by_hand)
    listing = verdict_table(study, verdicts, table)
    assert listing.cells[1][2].startswith(
        "test error, %, last epoch minus the least evaluation: uniform"
    )
    assert "Each other metric, read-out or factor is a family of its own." in listing.caption


def test_a_factor_compares_with_a_multiple_of_the_second_arm() -> None:
    half, double = (claim("less", factor=factor) for factor in (0.5, 2.0))
    study = replace(make_study(), claims=(claim("less"), half, double))
    results = [finish(run) for run in study.runs()]
    table = tabulate(study, results)
    assert table.family.size == 2
    plain, halved, doubled = verdicts_of(study, arrange(study, results), table)
    means = {row.arm: row.summaries["test/error"].mean for row in table.rows}
    assert plain.value == pytest.approx(means["uniform"] - means["erm"])
    assert halved.value == pytest.approx(means["uniform"] - 0.5 * means["erm"])
    assert [found.verdict for found in (plain, halved, doubled)] == ["holds", "fails", "holds"]
    listing = verdict_table(study, (plain, halved, doubled), table)
    assert listing.cells[1][2] == "test error, %: uniform less than 0.5 x erm"


def test_the_numbers_behind_a_verdict_are_those_of_the_table_and_agree_with_its_p() -> None:
    study = make_study()
    study = replace(study, claims=(claim("less"), claim("less", left="midpoint")))
    results = ended(study, {})
    table = tabulate(study, results)
    found = verdicts_of(study, arrange(study, results), table)
    for verdict, row in zip(found, (table.rows[2], table.rows[1]), strict=True):
        assert row.compared is not None
        assert (verdict.value, verdict.low, verdict.high) == (
            row.compared.comparison.difference, row.compared.low, row.compared.high,
        )  # fmt: skip
        assert (verdict.verdict == "holds") == row.compared.is_told


def test_a_claim_about_a_number_has_the_mean_and_the_number_as_reference() -> None:
    (found,) = judged(make_study(), claim("less", right=0.3))
    assert found.value == pytest.approx(0.1944 + 0.002, abs=0.002)
    assert found.reference == 0.3
    assert found.low is not None
    assert found.high is not None
    assert found.low < (found.value or 0) < found.high < 0.3


def test_the_reference_of_two_arms_is_the_difference_that_the_paper_prints() -> None:
    study = replace(
        make_study(),
        references={"uniform": {"test/error": 0.05}, "erm": {"test/error": 0.06}},
    )
    assert judged(study, claim("less"))[0].reference == pytest.approx(-0.01)
    assert judged(make_study(), claim("less"))[0].reference is None


@pytest.mark.parametrize(
    "made", [claim("less"), claim("less", left="nobody"), claim("less", metric="test/new")]
)
def test_a_claim_whose_runs_are_not_all_there_is_unfinished(made: Claim) -> None:
    study = make_study()
    results = ended(study, {("uniform", 1): {"epochs": 3}})
    (found,) = judged(study, made, results=results)
    assert (found.verdict, found.value) == ("unfinished", None)


def test_a_claim_of_arms_measured_on_different_data_is_never_judged() -> None:
    study = make_study()
    data = replace(study.arms["uniform"].data, name="cifar10")
    arms = {**study.arms, "uniform": replace(study.arms["uniform"], data=data)}
    study = replace(study, arms=arms)
    found = judged(study, claim("less"), claim("less", left="midpoint"), claim("less", right=0.3))
    assert [verdict.verdict for verdict in found] == ["unfinished", "holds", "holds"]


def test_one_seed_decides_nothing_and_numbers_that_do_not_vary_do(decay: None) -> None:
    one = decay_study(seeds=1)
    made = claim("greater", left="rate 2", right="rate 1", metric="margin")
    assert judged(one, made, results=[decayed(r) for r in one.runs()])[0].verdict == "undecided"
    three = decay_study(seeds=3)
    (found,) = judged(three, made, results=[decayed(run) for run in three.runs()])
    assert (found.verdict, found.low, found.high) == ("holds", found.value, found.value)
    exact = claim("at_most", left="rate 1", right=0.0, metric="norm")
    (found,) = judged(three, exact, results=[decayed(run) for run in three.runs()])
    assert (found.verdict, found.value) == ("fails", 3.0)


def test_verdicts_csv_has_its_columns_even_without_a_claim() -> None:
    header = "says,verdict,value,low,high,reference,n"
    assert verdicts_csv(()) == header + "\n"
    text = verdicts_csv(tuple(judged(make_study(), claim("less"))))
    assert text.splitlines()[0] == header
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["says"], row["verdict"], row["n"]) == ("uniform less erm", "holds", "5")
    assert float(row["value"]) < 0


def test_the_table_of_verdicts_names_source_comparison_and_family() -> None:
    study = replace(make_study(), claims=(claim("within", right=0.2, margin=0.03),))
    results = [finish(run) for run in study.runs()]
    table = tabulate(study, results)
    verdicts = verdicts_of(study, arrange(study, results), table)
    listing = verdict_table(study, verdicts, table)
    assert listing.cells[0][:3] == (
        "uniform within 0.2 (a paper, table 1)", "holds",
        "test error, %: uniform within 20.00 ± 3.00",
    )  # fmt: skip
    assert "3 comparisons" in listing.caption


def test_a_claim_about_predictions_is_judged_by_them(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    metric = "predicted/calibration_error"
    study = replace(study, claims=(claim("less", metric=metric),))
    arranged = arrange(study, results)
    table = tabulate(study, results)
    predicted = gather_predictions(arranged, study.readout, reader())
    (verdict,) = verdicts_of(study, arranged, table, predicted)
    raw = [
        [predicted.arms[arm].runs[seed].raw.error for seed in range(5)]
        for arm in ("uniform", "erm")
    ]
    test = scipy.stats.ttest_rel(*raw)
    interval = test.confidence_interval(0.95)
    assert verdict.value == pytest.approx(np.subtract(*raw).mean())
    assert (verdict.low, verdict.high) == (
        pytest.approx(interval.low),
        pytest.approx(interval.high),
    )
    assert verdict.n == 5
    (cells,) = verdict_table(study, (verdict,), table).cells
    assert cells[2] == "test calibration error, % after the last epoch: uniform less than erm"
    assert verdicts_of(study, arranged, table)[0].verdict == "unfinished"


def test_measures_of_predictions_are_those_that_claims_may_name(study: Study) -> None:
    assert {f"predicted/{name}" for name in MEASURES} == set(study.problem.predicted)
