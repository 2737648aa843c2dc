"""Equivalences: table of the probabilities that an arm is better, equivalent or worse."""

import math
from dataclasses import dataclass
from typing import Any

from scipy import special

from reports.numbers.comparison import Comparison
from reports.numbers.spelling import spell_amount
from reports.tables.listings import Listing
from reports.tables.table import Table


def equivalence_table(table: Table, margin: float | None) -> Listing | None:
    """Return the table of P(better), P(equivalent), P(worse) of each arm against the baseline.

    The result is None without a margin, or if no arm can be paired with the baseline by seed.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Equivalence:
    """Probabilities that the true mean difference is below, within or above a margin.

    They add up to 1.
    """

    below: float
    """Probability that the difference is less than minus the margin."""
    within: float
    above: float
    """Probability that the difference is more than the margin."""


def equivalence(comparison: Comparison, margin: float) -> Equivalence | None:
    """Return the probabilities that the true difference is below, within or above a margin.

    The differences are taken as independent and normal, with a flat prior on the mean and on the
    logarithm of the sd. The posterior of the mean is then Student t with n - 1 degrees of freedom
    around the observed mean, scaled by sd / sqrt(n). If the sampling noise of the test images is
    larger than the sd, it replaces the sd.

    Source: Benavoli et al. 2017, Time for a change, JMLR 18(77), section 4, with correlation 0,
    because seeds are independent, unlike folds.
    """
    if comparison.spread is None:
        return None
    centre = comparison.difference
    scale = comparison.spread / math.sqrt(comparison.n)
    low, high = (
        float(special.stdtr(comparison.n - 1, (-margin - side * centre) / scale))
        for side in (1, -1)
    )
    return Equivalence(below=low, within=max(0.0, 1 - low - high), above=high)
