"""Equivalences: table of the probabilities that an arm is better, equivalent or worse."""

from typing import Any

from reports.numbers.equivalence import equivalence
from reports.numbers.spelling import spell_amount
from reports.tables.listings import Listing
from reports.tables.table import Table


def equivalence_table(table: Table, margin: float | None) -> Listing | None:
    """Return the table of P(better), P(equivalent), P(worse) of each arm against the baseline.

    The result is None without a margin, or if no arm can be paired with the baseline by seed.

    Args:
        table: The main table, with the comparisons.
        margin: Largest difference that counts as equivalent, if the study declares one; otherwise
            None.
    """
    if margin is None:
        return None
    cells, records = [], []
    for row in table.printed:
        found = row.compared and equivalence(row.compared.comparison, margin)
        if row.compared is None or not found:
            continue
        better, worse = found.below, found.above
        if not table.shown.is_lower_better:
            better, worse = worse, better
        parts = (better, found.within, worse)
        cells.append((row.arm, *map(_spell_part, parts), str(row.compared.comparison.n)))
        record: dict[str, Any] = {"arm": row.arm, "baseline": table.baseline, "margin": margin}
        names = ("p_better", "p_equivalent", "p_worse")
        records.append(
            record | dict(zip(names, parts, strict=True)) | {"n": row.compared.comparison.n}
        )
    if not cells:
        return None
    return Listing(
        name="equivalence",
        title="Probability that an arm is better, equivalent or worse",
        header=("arm", "P(better)", "P(equivalent)", "P(worse)", "n"),
        cells=tuple(cells),
        caption=f"Probabilities that an arm is better than {table.baseline}, equivalent to it or "
        f"worse. Arms are equivalent if their true means of the {table.shown.label} differ by no "
        f"more than the margin of {spell_amount(margin, table.shown)} that the study declares. The "
        "probabilities are a Bayesian posterior of the true mean of the paired differences: a "
        "Student t distribution, which follows from a flat prior and independent seeds.",
        records=tuple(records),
    )


def _spell_part(probability: float) -> str:
    if probability > 0.999 and probability < 1:
        return "> 0.999"
    return "< 0.001" if 0 < probability < 0.001 else f"{probability:.3f}"
