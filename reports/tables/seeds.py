"""Seeds: table of every run's value, and its difference from the baseline at the same seed."""

from collections.abc import Mapping
from typing import Any

from reports.numbers.runs import minus, values_of
from reports.numbers.spelling import DASH, spell_heading, spell_number
from reports.tables.listings import Listing
from reports.tables.table import Table
from sweeps.state.results import RunResult


def seeds_table(arranged: Mapping[str, Mapping[int, RunResult]], table: Table) -> Listing | None:
    """Return the table of every run: value and difference from the baseline, one column per seed.

    Values are those of the headline metric. The result is None if no run has one.
    """
    found = values_of(arranged, table.metric, table.readout)
    values = {row.title: found[row.arm] for row in table.printed}
    seeds = sorted({seed for by_seed in arranged.values() for seed in by_seed})
    if not any(values.values()):
        return None
    shown = table.shown

    def spell(value: float | None) -> str:
        return DASH if value is None else spell_number(value * shown.scale, shown.digits)

    compared = {
        row.title: minus(found[row.arm], found[table.baseline])
        for row in table.printed
        if row.compared is not None
    }
    heading = spell_heading(f"minus {table.baseline}", shown)
    lines = [
        *((arm, shown.heading, by_seed) for arm, by_seed in values.items()),
        *((arm, heading, by_seed) for arm, by_seed in compared.items()),
    ]
    return Listing(
        name="seeds",
        title="Every seed",
        header=("arm", "", *(f"seed {seed}" for seed in seeds)),
        cells=tuple(
            (arm, what, *(spell(by_seed.get(seed)) for seed in seeds))
            for arm, what, by_seed in lines
        ),
        caption=f"Value of each run (read-out: {table.readout}), and its difference from the run "
        f"of {table.baseline} at the same seed.",
        records=tuple(
            _record(row.arm, seed, found[row.arm].get(seed), compared.get(row.title, {}).get(seed))
            for row in table.printed
            for seed in arranged[row.arm]
        ),
        is_long=True,
    )


def _record(
    arm: str, seed: int, value: float | None, difference: float | None
) -> Mapping[str, Any]:
    return {"arm": arm, "seed": seed, "value": value, "difference": difference}
