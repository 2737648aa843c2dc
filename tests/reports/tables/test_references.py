from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.numbers.runs import arrange
from reports.tables.listings import spell_summary
from reports.tables.references import reference_table
from reports.tables.table import tabulate
from tests.reports.synthetic import AT_A_BOUND, at_a_bound, ended, make_study


def test_a_published_value_is_shown_next_to_the_measured_one_with_the_difference() -> None:
    references = {"uniform": {"test/error": 0.19, "test/nll": 0.5}, "nobody": {"test/error": 0.1}}
    study = replace(make_study(), references=references)
    listing = reference_table(study, arrange(study, ended(study, {})))
    assert listing is not None
    assert listing.cells[0] == (
        "uniform", "test error, %", "19.64 ± 1.48", "5/5", "19.00", "0.64 points [-0.84, 2.12]",
    )  # fmt: skip
    assert listing.cells[1][1] == "test NLL, nats"
    assert len(listing.cells) == 2
    assert listing.records[0]["difference"] == pytest.approx(listing.records[0]["mean"] - 0.19)


def test_deviations_from_the_source_are_stated_with_its_values() -> None:
    study = replace(make_study(), references={"erm": {"test/error": 0.2}})
    listing = reference_table(study, arrange(study, ended(study, {})))
    assert listing is not None
    assert "Differences from the source" not in listing.caption
    study = replace(study, differs=("a new optimizer for each run", "intervals by Student's t"))
    listing = reference_table(study, arrange(study, ended(study, {})))
    assert listing is not None
    assert listing.caption.endswith(
        "Differences from the source: a new optimizer for each run; intervals by Student's t."
    )


def test_an_untrained_method_shows_only_its_published_value() -> None:
    study = replace(
        make_study(),
        references={"erm": {"test/error": 0.2}},
        untrained={"AlignMix": {"test/error": 0.0295}},
    )
    listing = reference_table(study, arrange(study, ended(study, {})))
    assert listing is not None
    assert [cells[0] for cells in listing.cells] == ["erm", "AlignMix"]
    assert listing.cells[1] == ("AlignMix", "test error, %", "—", "not trained", "2.95", "—")
    assert listing.records[1]["mean"] is None


def test_an_arm_without_a_result_shows_the_published_value() -> None:
    study = replace(make_study(), references={"erm": {"test/error": 0.06}})
    listing = reference_table(study, arrange(study, []))
    assert listing is not None
    assert listing.cells[0][2:] == ("—", "0/5", "6.00", "—")


def test_there_is_no_reference_table_without_references() -> None:
    study = make_study()
    assert reference_table(study, arrange(study, [])) is None


@pytest.mark.parametrize("errors", AT_A_BOUND)
def test_the_interval_of_an_arm_in_the_reference_table_equals_the_main_table(
    errors: Sequence[float],
) -> None:
    study = replace(make_study(), references={"erm": {"test/error": 0.06}})
    results = at_a_bound(study, errors)
    listing = reference_table(study, arrange(study, results))
    assert listing is not None
    told = tabulate(study, results).rows[0].summaries["test/error"]
    assert listing.cells[0][2] == spell_summary(told, study.problem.metric("test/error"))
