from reports.numbers.summary import summarise
from reports.tables.listings import Listing, spell_summary
from tests.reports.synthetic import make_study


def test_markup_in_a_listing_is_escaped_and_its_csv_has_every_digit() -> None:
    listing = Listing(
        name="x", title="X", header=("a|b",), cells=(("*",),), caption="c",
        records=({"a": 0.1 + 0.2},),
    )  # fmt: skip
    assert listing.markdown() == "| a\\|b |\n| ---- |\n| \\*   |\n\nc\n"
    assert listing.csv() == "a\n0.30000000000000004\n"


def test_a_summary_is_spelled_in_the_unit_and_the_digits_of_its_metric() -> None:
    problem = make_study().problem
    assert spell_summary(summarise([0.25]), problem.metric("test/error")) == "25.00 ± —"
    assert spell_summary(summarise([0.25, 0.25]), problem.metric("test/nll")) == "0.250 ± —"
    assert spell_summary(summarise([0.25, 0.26]), problem.metric("test/error")) == "25.5 ± 6.4"
    assert spell_summary(summarise([0.25, 0.26, 0.27]), problem.metric("test/error")).startswith(
        "26.00 ± "
    )
    assert spell_summary(None, problem.metric("test/nll")) == "—"
