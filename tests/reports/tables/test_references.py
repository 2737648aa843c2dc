from dataclasses import replace

import pytest

from reports.numbers.runs import arrange
from reports.tables.references import reference_table
from tests.reports.synthetic import ended, make_study


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
