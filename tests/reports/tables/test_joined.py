"""Joined tables: several datasets, and one study on two machines."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import scipy.stats

from mixup_core.config.building import with_values
from reports.numbers.judging import verdict_records, verdicts_of
from reports.numbers.predicted import gather_predictions
from reports.numbers.runs import arrange, runs_csv
from reports.numbers.spelling import spell_csv
from reports.tables.joined import Joined, join
from reports.tables.joined_columns import JoinedColumn, MixedProtocolsError
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.state.statements import Statement
from sweeps.study.claims import UntilDecided
from sweeps.study.study import Study
from tests.reports.synthetic import SMALL, claim, ended, finish, make_study, rows_of
from tests.reports.synthetic_predictions import reader

CLAIM = claim("less")
LOST = {"epochs": 3, "failure": "loss is not finite", "kind": "diverged"}


def column(
    study: Study,
    *,
    place: str = "runs",
    error: Callable[[RunResult], float] | None = None,
    **environment: str,
) -> JoinedColumn:
    results = []
    for run in study.runs():
        ended = finish(run)
        if error is not None:
            ended = finish(run, error(ended))
        known = {**ended.stage.environment, **environment}
        results.append(replace(ended, stage=replace(ended.stage, environment=known)))
    return JoinedColumn(study=study, results=tuple(results), place=place, data_checksums={})


def other_data(study: Study, name: str, data: str) -> Study:
    arms = {arm: with_values(c, {"data.name": data}) for arm, c in study.arms.items()}
    return replace(study, name=name, arms=arms)


@pytest.fixture
def machines() -> Joined:
    """A study on two machines; on the second one uniform is worse than ERM."""
    study = replace(SMALL, claims=(CLAIM,))

    def elsewhere(ended: RunResult) -> float:
        last = ended.records[-1].metrics["test/error"]
        return 0.23 + 0.02 * (-1) ** ended.run.seed if ended.run.arm == "uniform" else last

    return join(
        [
            column(study, instructions="AVX512"),
            column(study, instructions="AVX2", onednn_at_most="AVX2", error=elsewhere),
        ],
        command="mixsweep report small",
    )


def test_a_column_has_the_same_numbers_as_the_report_of_its_study(machines: Joined) -> None:
    for head, part in machines.columns.items():
        table = tabulate(part.study, part.results).csv()
        runs = runs_csv(part.study, part.results)
        for name, text in (("joined.csv", table), ("joined_runs.csv", runs)):
            own = rows_of(text)
            ours = [row for row in rows_of(machines.files()[name]) if row["column"] == head]
            assert [{column: row[column] for column in own[0]} for row in ours] == own


def test_arms_of_variants_and_teachers_are_in_no_table() -> None:
    study = replace(SMALL, beside=("midpoint",))
    joined = join([column(study), column(study, place="copy")], command="")
    tables = joined.listings()
    assert "same_runs" in {listing.name for listing in tables}
    assert not [row for listing in tables for row in listing.cells if "midpoint" in row[0]]


def test_the_same_runs_are_compared_seed_by_seed(machines: Joined) -> None:
    same = next(part for part in machines.listings() if part.name == "same_runs")
    by_arm = {record["arm"]: record for record in same.records}
    assert (by_arm["erm"]["equal"], by_arm["erm"]["difference"]) == (5, 0.0)
    ours, theirs = (
        [
            result.records[-1].metrics["test/error"]
            for result in part.results
            if result.run.arm == "uniform"
        ]
        for part in machines.columns.values()
    )
    test = scipy.stats.ttest_rel(theirs, ours)
    assert by_arm["uniform"]["difference_ci_low_unadjusted"] == pytest.approx(
        test.confidence_interval().low
    )
    assert by_arm["uniform"]["n"] == 5


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"data.val_size": 1000}, r"data.val_size: 0 in small, 1000 in tens"),
        ({"epochs": 9}, r"epochs: 10 in small, 9 in tens"),
        ({"data.views": "single"}, r"data.views: concat in small, single in tens"),
    ],
)
def test_a_column_with_another_protocol_is_refused_with_the_difference(
    changed: dict[str, object], text: str
) -> None:
    other = other_data(SMALL, "tens", "cifar10")
    arms = {arm: with_values(config, changed) for arm, config in other.arms.items()}
    mixed = [column(SMALL), column(replace(other, arms=arms))]
    with pytest.raises(MixedProtocolsError, match=text):
        join(mixed, command="")


def test_a_column_may_lack_an_arm_and_seeds() -> None:
    smaller = other_data(make_study(("erm", "uniform"), seeds=(0, 1, 2)), "tens", "cifar10")
    means, differences, *_ = join([column(SMALL), column(smaller)], command="").listings()
    assert [line[2][-5:] for line in means.cells] == ["(3/3)", "—", "(3/3)"]
    assert differences.cells[0][3] == "—"


def test_a_column_has_the_warnings_and_notes_of_its_report() -> None:
    study = make_study(("erm", "uniform"))
    results = tuple(
        replace(finish(replace(run, arm="erm"), 0.9 + run.seed / 1000), run=run)
        for run in study.runs()
    )
    copied = replace(column(study, place="copy"), results=results)
    caption = join([column(study), copied], command="").listings()[0].caption
    assert "Column copy: WARNING, no arm is better than guessing a class" in caption
    assert "Column copy: The runs of uniform and erm have equal results" in caption
    assert caption.count("Column runs: ") == 1


def test_claims_about_predictions_are_judged_separately_in_each_column() -> None:
    study = replace(SMALL, claims=(claim("less", metric="predicted/calibration_error"),))
    here = replace(column(study), predictions=reader())
    there = column(study, place="copy")
    joined = join([here, there], command="")
    arranged = arrange(study, here.results)
    predicted = gather_predictions(study, arranged, reader())
    (expected,) = verdicts_of(study, arranged, predicted)
    of_here, of_there = (part.verdicts for part in joined.columns.values())
    assert of_here == (expected,)
    assert expected.value is not None
    assert of_there[0].verdict == "unfinished"


def test_claims_of_the_same_words_are_different_rows() -> None:
    study = replace(SMALL, claims=(claim("less", says="a"), claim("greater", says="a")))
    joined = join([column(study), column(study, place="copy")], command="")
    (listing,) = (one for one in joined.listings() if one.name == "verdicts")
    assert [line[1].partition(":")[0] for line in listing.cells] == ["holds", "fails"]


def test_files_with_a_lost_claim_and_without_looks_have_equal_columns() -> None:
    plain = replace(SMALL, claims=(CLAIM, claim("less", left="midpoint")))
    looks = replace(plain, until=UntilDecided(at_most=5, until="decided"))
    lost = replace(
        column(looks, place="copy"), results=tuple(ended(looks, {("midpoint", 0): LOST}))
    )
    rows = rows_of(spell_csv(verdict_records(lost.verdicts)))
    assert [row["looks"] for row in rows] == ["at look 2 of 3", ""]
    joined = join([column(plain), lost], command="").files()["joined_verdicts.csv"]
    assert [row["looks"] for row in rows_of(joined)] == ["", "", "at look 2 of 3", ""]


def test_claims_in_columns_are_corrected_for_seeds_changed_after_a_look() -> None:
    study = replace(SMALL, claims=(CLAIM,))
    stated = Statement(at_ms=0, finished=0, runs=4, seeds=(0, 1), looks=1, extended=1)
    here = replace(column(study), statements={CLAIM: stated})
    joined = join([here, column(study, place="copy")], command="")
    (paid,), (plain,) = (part.verdicts for part in joined.columns.values())
    assert (paid.confidence, plain.confidence) == pytest.approx((0.975, 0.95))
    assert paid.p == pytest.approx(2 * (plain.p or 0))
    (caption,) = (one.caption for one in joined.listings() if one.name == "verdicts")
    assert caption.endswith(
        f"Column {joined.heads[0]}: There is one claim. Its interval has the level 97.5 %, and its "
        "p value is multiplied by 2, because seeds were changed once after a report had shown "
        f"results. Column {joined.heads[1]}: There is one claim, so its interval and p value are "
        "not adjusted."
    )
