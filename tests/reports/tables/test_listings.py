from reports.tables.listings import Listing


def test_markup_in_a_listing_is_escaped_and_its_csv_has_every_digit() -> None:
    listing = Listing(
        name="x", title="X", header=("a|b",), cells=(("*",),), caption="c",
        records=({"a": 0.1 + 0.2},),
    )  # fmt: skip
    assert listing.markdown() == "| a\\|b |\n| ---- |\n| \\*   |\n\nc\n"
    assert listing.csv() == "a\n0.30000000000000004\n"
