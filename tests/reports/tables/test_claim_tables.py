from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from reports.numbers.comparison import compare
from reports.numbers.judging import varied_verdicts, verdicts_of
from reports.numbers.predicted import gather_predictions
from reports.numbers.runs import arrange, primary_of
from reports.numbers.verdict import Verdict
from reports.pages.build import draft_report, report_table
from reports.tables.claim_tables import looks_table, verdict_table
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.state.statements import Statement
from sweeps.study.budget import Budget
from sweeps.study.claims import Claim, UntilDecided
from sweeps.study.readouts import MeanOfLast, Rise
from sweeps.study.study import Study, Variant
from tests.reports.synthetic import (
    EPOCHS,
    FINISHED,
    SMALL,
    claim,
    ended,
    finish,
    make_study,
    rows_of,
)
from tests.reports.synthetic_predictions import reader


def judged(study: Study, *claims: Claim, results: list[RunResult] | None = None) -> list[Verdict]:
    study = replace(study, claims=claims)
    results = ended(study, {}) if results is None else results
    return list(verdicts_of(study, arrange(study, results)))


# uniform minus erm is -2.94 points, its interval over one comparison [-3.92, -1.96]
@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (claim("less"), "holds"),
        (claim("greater"), "fails"),
        (claim("at_least", margin=0.001), "fails"),
        (claim("at_most", margin=0.001), "holds"),
        (claim("at_least", margin=0.03), "undecided"),
        (claim("at_least", margin=0.06), "holds"),
        (claim("within", margin=0.06), "holds"),
        (claim("within", margin=0.03), "undecided"),
        (claim("within", margin=0.01), "fails"),
        (claim("less", right=0.3), "holds"),
        (claim("at_least", right=0.196, margin=0.001), "undecided"),
        (claim("at_least", right=0.196, margin=0.02), "holds"),
        (claim("greater", right=0.196), "undecided"),
        (claim("within", right=0.2, margin=0.03), "holds"),
    ],
)
def test_a_claim_is_judged_by_its_interval(made: Claim, verdict: str) -> None:
    (found,) = judged(SMALL, made)
    assert found.verdict == verdict
    assert found.n == 5


def test_claims_of_all_metrics_and_read_outs_are_one_family_apart_from_the_table() -> None:
    rises = claim("greater", right="erm", readout=Rise())
    study = replace(SMALL, claims=(claim("less"), rises))
    table = tabulate(study, FINISHED)
    assert table.family == tabulate(SMALL, FINISHED).family
    assert "Tests of the study's claims are adjusted separately." in table.caption
    verdicts = verdicts_of(study, arrange(study, FINISHED))
    by_hand = {
        result.run.arm: result.records[-1].metrics["test/error"]
        - min(record.metrics["test/error"] for record in result.records)
        for result in FINISHED
        if result.run.seed == 0
    }
    assert verdicts[1].value == pytest.approx(by_hand["uniform"] - by_hand["erm"], abs=1e-3)
    assert verdicts[1].n == 5
    listing = verdict_table(study, verdicts)
    assert listing.cells[1][2].startswith(
        "test error, %, last epoch minus the least evaluation: uniform"
    )
    assert "adjusted for the 2 tests of the claims (Holm)" in listing.caption


def test_holm_decides_the_smallest_p_first_and_each_interval_has_its_level() -> None:
    study = replace(
        SMALL,
        claims=(
            claim("less"),
            claim("less", left="midpoint"),
            claim("less", left="uniform", right="midpoint"),
            claim("greater", left="erm", right="uniform"),
        ),
    )
    arranged = arrange(study, FINISHED)
    values = {
        arm: [r.records[-1].metrics["test/error"] for r in by_seed.values()]
        for arm, by_seed in arranged.items()
    }
    pairs = [("uniform", "erm"), ("midpoint", "erm"), ("uniform", "midpoint"), ("erm", "uniform")]
    tests = [scipy.stats.ttest_rel(values[a], values[b]) for a, b in pairs]
    found = verdicts_of(study, arranged)
    order = sorted(range(3), key=lambda place: tests[place].pvalue)
    reached = 0.0
    for rank, place in enumerate(order):
        reached = max(reached, (3 - rank) * tests[place].pvalue)
        assert found[place].p == pytest.approx(min(1, reached), rel=1e-6)
        level = 1 - 0.05 / (3 - rank)
        assert found[place].confidence == pytest.approx(level)
        interval = tests[place].confidence_interval(level)
        assert (found[place].low, found[place].high) == pytest.approx((interval.low, interval.high))
    assert (found[3].p, found[3].verdict) == (found[0].p, found[0].verdict), "one test, said twice"


def test_every_claim_after_the_first_undecided_one_has_its_level() -> None:
    study = replace(SMALL, claims=(claim("less"), claim("less", left="midpoint")))
    rng = np.random.default_rng(0)
    results = [finish(run, float(rng.normal(0.2, 0.01))) for run in study.runs()]
    found = verdicts_of(study, arrange(study, results))
    assert [each.verdict for each in found] == ["undecided", "undecided"]
    assert [each.confidence for each in found] == pytest.approx([0.975, 0.975])


@pytest.mark.parametrize(
    "made", [claim("less"), claim("less", left="nobody"), claim("less", metric="test/new")]
)
def test_a_claim_with_missing_runs_is_unfinished(made: Claim) -> None:
    results = ended(SMALL, {("uniform", 1): {"epochs": 3}})
    (found,) = judged(SMALL, made, results=results)
    assert (found.verdict, found.value) == ("unfinished", None)


def test_a_claim_of_arms_measured_on_different_data_is_never_judged() -> None:
    data = replace(SMALL.arms["uniform"].data, name="cifar10")
    arms = {**SMALL.arms, "uniform": replace(SMALL.arms["uniform"], data=data)}
    study = replace(SMALL, arms=arms)
    found = judged(study, claim("less"), claim("less", left="midpoint"), claim("less", right=0.3))
    assert [verdict.verdict for verdict in found] == ["unfinished", "holds", "holds"]


def test_a_claim_about_predictions_is_judged_by_the_stored_predictions() -> None:
    metric = "predicted/calibration_error"
    study = replace(SMALL, claims=(claim("less", metric=metric),))
    arranged = arrange(study, FINISHED)
    predicted = gather_predictions(study, arranged, reader())
    (verdict,) = verdicts_of(study, arranged, predicted)
    values = predicted.values("calibration_error")
    compared = compare(values["uniform"], values["erm"])
    assert (verdict.value, verdict.n) == (pytest.approx(compared.difference), 5)
    assert (verdict.low, verdict.high) == pytest.approx((compared.ci_low, compared.ci_high))
    (cells,) = verdict_table(study, (verdict,)).cells
    assert cells[2] == "test calibration error, %, last epoch: uniform less than erm"
    assert verdicts_of(study, arranged)[0].verdict == "unfinished"


def with_variant(*claims: Claim) -> Study:
    """Return a study whose arms `erm x` and `uniform x` are trained under another setting."""
    arms = {"erm": "erm x", "uniform": "uniform x"}
    return replace(
        make_study(arms=(*arms, *arms.values())),
        claims=claims, variants=(Variant(label="x", arms=arms),), beside=tuple(arms.values()),
    )  # fmt: skip


@pytest.mark.usefixtures("undrawn")
def test_a_verdict_shows_whether_sign_and_decision_hold_under_other_settings() -> None:
    mean = Variant(
        label="mean of the last 2 evaluations",
        arms={"erm": "erm", "uniform": "uniform"},
        readout=MeanOfLast(evaluations=2),
    )
    study = with_variant(claim("less"), claim("greater", left="erm", right=0.1))
    study = replace(study, variants=(*study.variants, mean))
    errors = {("erm x", seed): {"error": 0.18 + 0.001 * seed} for seed in study.seeds}
    errors |= {("uniform x", seed): {"error": 0.21 + 0.0015 * seed} for seed in study.seeds}
    results = ended(study, errors)
    table = tabulate(study, results)
    assert [row.arm for row in table.rows] == ["erm", "uniform"]
    primary, own = primary_of(study, results)
    verdicts = verdicts_of(primary, arrange(primary, own))
    varied = varied_verdicts(study, results)
    assert [found.verdict for found in verdicts] == ["holds", "holds"]
    assert [found.verdict for found in varied["x"]] == ["fails", "holds"]
    assert {found.confidence for found in varied["x"]} == {0.95, 0.975}
    listing = verdict_table(primary, verdicts, varied)
    assert listing.header[-1] == "under other settings"
    assert listing.cells[0][-1] == "x: fails, other sign; same under mean of the last 2 evaluations"
    assert listing.cells[1][-1] == "same under x, mean of the last 2 evaluations"
    own = varied_verdicts(replace(study, claims=(claim("less", readout=Rise()),)), results)
    assert [len(verdicts) for verdicts in own.values()] == [1, 0]
    report = draft_report(study, results, data_checksums={}, command="mixsweep")
    rows = rows_of(str(report.contents["tables/verdicts.csv"]))
    assert [row["variants"] for row in rows] == [cells[-1] for cells in listing.cells]
    assert len(rows_of(str(report.contents["runs.csv"]))) == len(study.runs())


@pytest.mark.usefixtures("undrawn")
def test_verdicts_under_other_settings_are_corrected_for_seeds_changed_after_a_look() -> None:
    noise = {"erm": (0.0,) * 5, "uniform": (-0.02, -0.01, -0.03, -0.004, -0.036)}
    study = with_variant(claim("less"))
    errors = {
        (arm + beside, seed): {"error": 0.2 + noise[arm][seed]}
        for arm in noise
        for beside in ("", " x")
        for seed in study.seeds
    }
    stated = Statement(at_ms=0, finished=0, runs=4, seeds=(0, 1), looks=1, extended=1)
    for statements, verdict in (({}, "holds"), ({study.claims[0]: stated}, "undecided")):
        report = draft_report(
            study, ended(study, errors), data_checksums={}, command="", statements=statements
        )
        (row,) = rows_of(str(report.contents["tables/verdicts.csv"]))
        assert (row["verdict"], row["variants"]) == (verdict, "same under x")


def test_a_budget_counts_the_runs_of_variants() -> None:
    study = replace(with_variant(claim("less")), budget=Budget(runs=8))
    results = [finish(run, epochs=EPOCHS * (run.seed < 2)) for run in study.runs()]
    caption = report_table(study, results).caption
    assert "The study used up its budget of 8 runs, after 8 of 20 runs." in caption


def test_the_file_of_looks_has_a_row_for_each_claim_at_each_look() -> None:
    study = replace(SMALL, claims=(claim("less"),), until=UntilDecided(at_most=5, until="decided"))
    table = looks_table(study, arrange(study, FINISHED))
    for row in table.records:
        assert list(row) == [
            "look", "seeds", "says", "value", "low", "high", "p", "confidence", "result",
        ]  # fmt: skip
    assert (table.records[-1]["says"], table.records[-1]["result"]) == ("uniform less erm", "holds")
