"""Joined tables: several datasets, and one study on two machines."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from statistics import mean

import pytest
import scipy.stats

from mixup_core.config.building import with_values
from reports.numbers.judging import verdicts_of
from reports.numbers.predicted import gather_predictions
from reports.numbers.runs import arrange
from reports.tables.joined import Joined, join
from reports.tables.joined_columns import JoinedColumn, MixedProtocolsError
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.state.statements import Statement
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.readouts import MeanOfLast
from sweeps.study.study import Study
from tests.reports.decay import decay_study, decayed
from tests.reports.synthetic import finish, make_study, rows_of
from tests.reports.synthetic_predictions import reader

CLAIM = Claim(
    says="Uniform beats ERM", source="a paper",
    that=StatedComparison(metric="test/error", less=("uniform", "erm")),
)  # fmt: skip


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
        assert ended.stage is not None
        known = {**ended.stage.environment, **environment}
        results.append(replace(ended, stage=replace(ended.stage, environment=known)))
    return JoinedColumn(study=study, results=tuple(results), place=place, data_checksums={})


def other_data(study: Study, name: str, data: str) -> Study:
    arms = {arm: with_values(c, {"data.name": data}) for arm, c in study.arms.items()}
    return replace(study, name=name, arms=arms)


@pytest.fixture
def data_sets() -> Joined:
    study = replace(make_study(), references={"erm": {"test/error": 0.2}}, claims=(CLAIM,))
    columns = [column(study), column(other_data(study, "tens", "cifar10"))]
    return join(columns, command="mixsweep report small tens")


@pytest.fixture
def machines() -> Joined:
    """A study on two machines; on the second one uniform is worse than ERM."""
    study = replace(make_study(), claims=(CLAIM,))

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


def test_the_columns_are_data_sets_and_the_rows_are_arms(data_sets: Joined) -> None:
    means, differences, verdicts, references = data_sets.listings()
    assert means.header == ("arm", "fashion-mnist", "cifar10")
    assert [line[0] for line in means.cells] == ["erm", "midpoint", "uniform"]
    assert all("(5/5)" in cell for line in means.cells for cell in line[1:])
    assert "**" in means.markdown().splitlines()[-3]
    assert "10 000 test images" in means.caption
    assert differences.header[1:] == ("fashion-mnist, points", "p", "cifar10, points", "p")
    assert "no verdict changes" in differences.caption
    assert verdicts.cells[0][0] == "Uniform beats ERM (a paper)"
    assert references.cells[0][2] == "20.00"


def test_a_column_has_the_same_numbers_as_the_report_of_its_study(machines: Joined) -> None:
    rows = rows_of(machines.files()["joined.csv"])
    for place, part in enumerate(machines.columns):
        own = rows_of(tabulate(part.study, part.results).csv())
        ours = [row for row in rows if row["column"] == machines.heads[place]]
        assert [{name: row[name] for name in own[0]} for row in ours] == own


def test_every_number_of_the_joined_table_follows_from_its_runs(machines: Joined) -> None:
    files = machines.files()
    runs = rows_of(files["joined_runs.csv"])
    for row in rows_of(files["joined.csv"]):
        of = {
            arm: [float(run["test/error"]) for run in runs
                  if (run["arm"], run["column"]) == (arm, row["column"])]
            for arm in (row["arm"], row["baseline"])
        }  # fmt: skip
        assert float(row["test/error_mean"]) == pytest.approx(mean(of[row["arm"]]))
        if row["p"]:
            test = scipy.stats.ttest_rel(of[row["arm"]], of[row["baseline"]])
            together = test.confidence_interval(1 - 0.05 / 2)
            assert float(row["p"]) == pytest.approx(min(1, 2 * test.pvalue))
            assert float(row["difference_ci_low"]) == pytest.approx(together.low)
            assert float(row["difference_ci_high"]) == pytest.approx(together.high)


def test_columns_of_two_machines_are_named_by_their_cpu_instructions(machines: Joined) -> None:
    assert machines.heads == ("AVX512", "AVX2")
    provenance = json.loads(machines.files()["provenance.json"])
    assert [part["column"] for part in provenance["columns"]] == ["AVX512", "AVX2"]
    (environment,) = provenance["columns"][1]["environments"]
    assert environment["onednn_at_most"] == "AVX2"
    assert "Column AVX2: study small" in machines.markdown()
    assert "(AVX2, oneDNN at most AVX2)" in machines.markdown()


def test_the_caption_names_columns_with_another_sign_decision_or_verdict(machines: Joined) -> None:
    caption = next(part.caption for part in machines.listings() if part.name == "differences")
    assert (
        "In the column AVX2, uniform minus erm has the opposite sign and is not "
        "significantly different from 0 at 5 %."
    ) in caption
    assert "In the column AVX2, midpoint minus erm" not in caption
    assert "“Uniform beats ERM”: holds in AVX512, undecided in AVX2." in caption
    verdicts = rows_of(machines.files()["joined_verdicts.csv"])
    assert [(row["column"], row["verdict"]) for row in verdicts] == [
        ("AVX512", "holds"),
        ("AVX2", "undecided"),
    ]


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
        for part in machines.columns
    )
    test = scipy.stats.ttest_rel(theirs, ours)
    assert by_arm["uniform"]["difference_ci_low_unadjusted"] == pytest.approx(
        test.confidence_interval().low
    )
    assert by_arm["uniform"]["n"] == 5


def test_there_is_no_table_of_same_runs_for_studies_without_common_runs(data_sets: Joined) -> None:
    assert "same_runs" not in {part.name for part in data_sets.listings()}


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
    study = make_study()
    other = other_data(study, "tens", "cifar10")
    arms = {arm: with_values(config, changed) for arm, config in other.arms.items()}
    mixed = [column(study), column(replace(other, arms=arms))]
    with pytest.raises(MixedProtocolsError, match=text):
        join(mixed, command="")


def test_all_differences_between_protocols_are_listed_in_one_error() -> None:
    study = make_study()
    other = replace(
        other_data(study, "tens", "cifar10"),
        readout=MeanOfLast(evaluations=3),
        baseline="midpoint",
    )
    other = replace(
        other,
        arms={**other.arms, "uniform": with_values(other.arms["uniform"], {"batch_size": 50})},
    )
    with pytest.raises(MixedProtocolsError) as refused:
        join([column(study), column(other)], command="")
    told = str(refused.value)
    assert "read-out: last epoch in small, mean of the last 3 evaluations in tens" in told
    assert "baseline: erm in small, midpoint in tens" in told
    assert "uniform.batch_size: 100 in small, 50 in tens" in told
    assert "data.name" not in told


def test_another_problem_is_refused(decay: None) -> None:
    study = decay_study()
    results = tuple(decayed(run) for run in study.runs())
    other = JoinedColumn(study=study, results=results, place="runs", data_checksums={})
    with pytest.raises(MixedProtocolsError, match="problem: images in small, decay in decay"):
        join([column(make_study()), other], command="")


def test_a_column_may_lack_an_arm_and_seeds() -> None:
    study = make_study()
    smaller = other_data(make_study(("erm", "uniform"), seeds=(0, 1, 2)), "tens", "cifar10")
    means, differences, *_ = join([column(study), column(smaller)], command="").listings()
    assert [line[2][-5:] for line in means.cells] == ["(3/3)", "—", "(3/3)"]
    assert differences.cells[0][3] == "—"


def test_columns_of_homes_on_one_machine_are_named_by_their_homes() -> None:
    study = make_study()
    here, there = (column(study, place=place) for place in ("runs", "copy"))
    assert join([here, there], command="").heads == ("runs", "copy")
    with pytest.raises(ValueError, match="two columns show the same study"):
        join([here, here], command="")
    with pytest.raises(ValueError, match="needs two columns or more"):
        join([here], command="")


def test_headings_join_all_properties_that_distinguish_columns() -> None:
    study = make_study()
    parts = [study, other_data(study, "tens", "cifar10")]
    columns = [column(s, instructions=i) for s in parts for i in ("AVX2", "AVX512")]
    heads = join(columns, command="").heads
    assert heads[1] == "fashion-mnist, small, AVX512"
    assert len(set(heads)) == 4


def test_claims_about_predictions_are_judged_separately_in_each_column() -> None:
    of_predicted = replace(CLAIM.that, metric="predicted/calibration_error")
    study = replace(make_study(), claims=(replace(CLAIM, that=of_predicted),))
    here = replace(column(study), predictions=reader())
    there = column(study, place="copy")
    joined = join([here, there], command="")
    arranged = arrange(study, here.results)
    predicted = gather_predictions(study, arranged, reader())
    (expected,) = verdicts_of(study, arranged, predicted)
    assert joined.verdicts[0] == (expected,)
    assert expected.value is not None
    assert joined.verdicts[1][0].verdict == "unfinished"


def test_claims_in_columns_are_corrected_for_seeds_changed_after_a_look() -> None:
    study = replace(make_study(), claims=(CLAIM,))
    stated = Statement(at_ms=0, finished=0, runs=4, seeds=(0, 1), looks=1, extended=1)
    here = replace(column(study), statements={CLAIM: stated})
    joined = join([here, column(study, place="copy")], command="")
    (paid,), (plain,) = joined.verdicts
    assert (paid.confidence, plain.confidence) == pytest.approx((0.975, 0.95))
    assert paid.p == pytest.approx(2 * (plain.p or 0))
    (caption,) = (one.caption for one in joined.listings() if one.name == "verdicts")
    assert caption.endswith(
        f"Column {joined.heads[0]}: There is one claim. Its interval has the level 97.5 %, and its "
        "p value is multiplied by 2, because seeds were changed once after a report had shown "
        f"results. Column {joined.heads[1]}: There is one claim, so its interval and p value are "
        "not adjusted."
    )


def test_latex_has_arms_and_differences_with_escaped_text(machines: Joined) -> None:
    text = machines.files()["joined.tex"]
    assert text.count("\\toprule") == 2
    assert "\\label{tab:small-means}" in text
    assert "\\textbf{" in text
    assert " % " not in text.replace("\\%", "")


def test_latex_with_many_columns_is_split_into_several_tables() -> None:
    study = make_study()
    parts = [column(study, place=f"home-{place}") for place in range(4)]
    text = join(parts, command="").latex()
    tables = text.split("\\toprule")[1:]
    headings = [table.splitlines()[1].count("home-") for table in tables]
    assert headings == [3, 1, 2, 2]
    bold = [table.count("\\textbf") for table in tables]
    assert bold == [3, 1, 0, 0]
    assert (
        len(re.findall(r"\\label\{[^}]+\}", text))
        == len(set(re.findall(r"\\label\{[^}]+\}", text)))
        == 4
    )


def test_seeds_added_after_a_look_lower_the_error_level_as_in_the_report() -> None:
    once = Statement(at_ms=0, finished=0, runs=10, seeds=(0, 1), looks=1, extended=1)
    own = column(replace(make_study(), claims=(CLAIM,)))
    (verdict,) = replace(own, statements={CLAIM: once}).judge()
    arranged = arrange(own.study, own.results)
    assert verdict == verdicts_of(own.study, arranged, statements={CLAIM: once})[0]
    assert verdict.confidence == 0.975
    assert own.judge()[0].confidence == 0.95
