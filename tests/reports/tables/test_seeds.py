"""Seeds table: values and paired differences, and a dash for a missing run."""

from reports.numbers.runs import arrange
from reports.tables.seeds import seeds_table
from reports.tables.table import tabulate
from tests.reports.synthetic import finish, make_study


def test_the_seeds_table_has_values_and_differences_of_each_arm_by_seed() -> None:
    study = make_study(("erm", "uniform"), seeds=(3, 5, 9))
    errors = {("erm", 3): 0.20, ("erm", 5): 0.30, ("uniform", 3): 0.10, ("uniform", 9): 0.25}
    results = [
        finish(run, errors[run.arm, run.seed])
        for run in study.runs()
        if (run.arm, run.seed) in errors
    ]
    listing = seeds_table(arrange(study, results), tabulate(study, results))
    assert listing is not None
    assert listing.header == ("arm", "", "seed 3", "seed 5", "seed 9")
    assert listing.cells == (
        ("erm", "test error, %", "20.00", "30.00", "—"),
        ("uniform", "test error, %", "10.00", "—", "25.00"),
        ("uniform", "minus erm, points", "-10.00", "—", "—"),
    )
    assert listing.is_long
    assert [tuple(record.values()) for record in listing.records] == [
        ("erm", 3, 0.20, None), ("erm", 5, 0.30, None), ("erm", 9, None, None),
        ("uniform", 3, 0.10, 0.10 - 0.20), ("uniform", 5, None, None), ("uniform", 9, 0.25, None),
    ]  # fmt: skip
