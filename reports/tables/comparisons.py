"""Comparisons: arms compared at each seed, by other read-outs, by a margin, and with papers.

A read-out turns a run into one number. Sensitivity to settings is no part of this module.
"""

import math
from typing import Any

from scipy import special

from reports.numbers.comparison import Comparison
from reports.numbers.families import changed_decisions, family_of, record_of
from reports.numbers.runs import Arranged, measure_of, measures_of, minus, values_of
from reports.numbers.spelling import (
    DASH,
    spell_amount,
    spell_heading,
    spell_interval,
    spell_number,
    spell_p,
)
from reports.numbers.summary import numbers_of, summarise
from reports.tables.listings import Listing, digits_of, spell_member, spell_summary
from reports.tables.table import Table
from sweeps.study.readouts import Averaged, Last, MeanOfLast, Readout
from sweeps.study.study import Study


def seeds_table(arranged: Arranged, table: Table) -> Listing | None:
    """Return the table of every run's value and difference from the baseline, by seed."""
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
    baseline = table.title_of(table.baseline)
    heading = spell_heading(f"minus {baseline}", shown)
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
        f"of {baseline} at the same seed.",
        records=tuple(
            {"arm": row.arm, "seed": seed, "value": found[row.arm].get(seed)}
            | {"difference": compared.get(row.title, {}).get(seed)}
            for row in table.printed
            for seed in arranged[row.arm]
        ),
        is_long=True,
    )


_UNCHANGED = "No difference changes its sign or its significance at 5 %."

_FEW = 3
"""Number of last evaluations that are averaged, if the study does not set it."""


def sensitivity_table(study: Study, arranged: Arranged, table: Table) -> Listing | None:
    """Return the table of the main table's comparisons of arms, repeated with each read-out."""
    families = {}
    for readout in _readouts(table):
        values = values_of(arranged, table.metric, readout)
        measures = measures_of(study, table.metric, readout)
        family = family_of(table.family.members, values, table.equal, measures)
        if family.members:
            families[readout] = family
    if len(families) < 2 or table.readout not in families:
        return None
    pairs = table.pairs
    cells, records = [], []
    for pair in pairs:
        for readout, family in families.items():
            member = family.members.get(pair)
            if member is None:
                continue
            cells.append(
                (
                    " minus ".join(map(table.title_of, pair)),
                    str(readout) + (", primary" if readout == table.readout else ""),
                    spell_member(member, table.shown),
                    str(member.comparison.n),
                    spell_p(member.p),
                )
            )
            records.append(
                {"arm": pair[0], "baseline": pair[1], "readout": str(readout)}
                | {"is_primary": readout == table.readout, "n": member.comparison.n}
                | record_of(member)
            )
    return Listing(
        name="sensitivity",
        title="The same comparisons with other read-outs",
        header=("comparison", "read-out", spell_heading(table.shown.label, table.shown), "n", "p"),
        cells=tuple(cells),
        caption="All rows are computed from the same runs. The primary read-out is the one that "
        "the study file names. Intervals and p values are adjusted for the comparisons of one "
        "read-out (Bonferroni), not for the number of read-outs. "
        + " ".join(
            changed_decisions(
                pairs,
                {f"By the {readout}": family for readout, family in families.items()},
                table.title_of,
            )
            or [_UNCHANGED]
        ),
        records=tuple(records),
    )


def changed_by_readout(listing: Listing | None) -> list[str]:
    """Return a caption's phrase if a difference changes sign or significance with the read-out."""
    if listing is None or listing.caption.endswith(_UNCHANGED):
        return []
    return [
        "the sign or the significance at 5 % of a difference depends on the read-out (see the "
        "table of comparisons with other read-outs)"
    ]


def _readouts(table: Table) -> dict[Readout, None]:
    """Return the read-outs to compare; the study's own read-out comes first."""
    primary = table.readout
    mean = primary if isinstance(primary, MeanOfLast) else MeanOfLast(evaluations=_FEW)
    means = (mean,) if table.problem.axis.metric is None else ()
    return dict.fromkeys((primary, Last(), *means, Averaged()))


def equivalence_table(table: Table, margin: float | None) -> Listing | None:
    """Return the table of P(better), P(equivalent), P(worse) of each arm against the baseline."""
    if margin is None:
        return None
    cells, records = [], []
    baseline = table.title_of(table.baseline)
    for row in table.printed:
        if row.compared is None:
            continue
        parts = equivalence(row.compared.comparison, margin)
        if parts is None:
            continue
        parts = parts if table.shown.is_lower_better else parts[::-1]
        cells.append((row.title, *map(_spell_part, parts), str(row.compared.comparison.n)))
        record: dict[str, Any] = {"arm": row.arm, "baseline": table.baseline, "margin": margin}
        # Frozen: columns of `tables/equivalence.csv`, which scripts read by name;
        # tests/reports/tables/test_comparisons.py fails.
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
        caption=f"Probabilities that an arm is better than {baseline}, equivalent to it or "
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


def equivalence(comparison: Comparison, margin: float) -> tuple[float, float, float] | None:
    """Return the probabilities that the true difference is below, within and above a margin.

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
    return low, max(0.0, 1 - low - high), high


REFERENCES_TITLE = "Comparison with published values"
UNCOVERED = (
    "Intervals are not adjusted for multiple comparisons. They cover the variation over our seeds "
    "only, not the uncertainty of the published values"
)
NOT_TRAINED = "not trained"


def reference_table(study: Study, arranged: Arranged) -> Listing | None:
    """Return the table of values printed in papers, values measured here, and their differences."""
    cells, records = [], []
    trained = {arm: row for arm, row in study.references.items() if arm in study.arms}
    for arm, by_metric in (*trained.items(), *study.untrained.items()):
        for metric, paper in by_metric.items():
            shown = study.problem.metric(metric)
            runs = {arm: arranged.get(arm, {})}
            values = list(values_of(runs, metric, study.readout)[arm].values())
            measure = measure_of(study, arm, metric, study.readout)
            ours = summarise(values, measure) if values else None
            difference, interval = DASH, ""
            record: dict[str, Any] = {"arm": arm, "metric": metric, "paper": paper}
            record |= numbers_of(ours) | {"difference": None if ours is None else ours.mean - paper}
            if ours is not None:
                ends = [None if end is None else end - paper for end in (ours.ci_low, ours.ci_high)]
                digits = digits_of(ours.n, shown)
                interval = spell_interval(ends[0], ends[1], shown.scale, digits)
                difference = spell_amount(ours.mean - paper, shown)
            cells.append(
                (
                    study.title_of(arm),
                    shown.heading,
                    spell_summary(ours, shown),
                    f"{len(values)}/{len(study.seeds_of(arm))}" if arm in trained else NOT_TRAINED,
                    spell_number(paper * shown.scale, shown.digits),
                    difference + interval,
                )
            )
            records.append(record)
    if not cells:
        return None
    return Listing(
        name="references",
        title=REFERENCES_TITLE,
        header=("arm", "metric", "ours", "n", "paper", "ours minus paper"),
        cells=tuple(cells),
        caption="Ours: mean ± the half-width of the 95 % t interval over seeds (read-out: "
        f"{study.readout}). {UNCOVERED}, nor the effect of other sizes, data or machines."
        f"{spell_differing(study)}",
        records=tuple(records),
    )


def spell_differing(study: Study) -> str:
    """Return a sentence on how a study differs from the papers whose values it is compared with."""
    if not study.differs:
        return ""
    return f" Differences from the source: {'; '.join(study.differs)}."
