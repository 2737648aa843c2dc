"""Sensitivity to the read-out: table of the main table's comparisons, repeated by each read-out.

A read-out turns a run into one number. Sensitivity to settings is no part of this module.
"""

from collections.abc import Mapping
from typing import Any

from reports.numbers.families import Family, Member, changed_decisions, family_of, record_of
from reports.numbers.runs import measures_of, values_of
from reports.numbers.spelling import spell_heading, spell_p
from reports.tables.listings import Listing, spell_member
from reports.tables.table import Table
from sweeps.state.results import RunResult
from sweeps.study.readouts import Averaged, Last, MeanOfLast, Readout
from sweeps.study.study import Study

_UNCHANGED = "No difference changes its sign or its significance at 5 %."
"""Sentence of the caption if all read-outs agree."""

_FEW = 3
"""Number of last evaluations that are averaged, if the study does not set it."""


def sensitivity_table(
    study: Study, arranged: Mapping[str, Mapping[int, RunResult]], table: Table
) -> Listing | None:
    """Return the table of the main table's comparisons of arms, repeated with each read-out.

    Read-outs for which no run has values are left out; the result is None if only one is left.
    """
    families = {
        readout: family
        for readout in _readouts(table)
        if (family := _family(study, arranged, table, readout)).members
    }
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
                    f"{pair[0]} minus {pair[1]}",
                    str(readout) + (", primary" if readout == table.readout else ""),
                    spell_member(member, table.shown),
                    str(member.comparison.n),
                    spell_p(member.p),
                )
            )
            records.append(_record_of(*pair, readout, readout == table.readout, member))
    return Listing(
        name="sensitivity",
        title="The same comparisons with other read-outs",
        header=(
            "comparison",
            "read-out",
            spell_heading(table.shown.label, table.shown),
            "n",
            "p",
        ),
        cells=tuple(cells),
        caption="All rows are computed from the same runs. The primary read-out is the one that "
        "the study file names. Intervals and p values are adjusted for the comparisons of one "
        "read-out (Bonferroni), not for the number of read-outs. "
        + " ".join(
            changed_decisions(
                pairs, {f"By the {readout}": family for readout, family in families.items()}
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


def _family(
    study: Study,
    arranged: Mapping[str, Mapping[int, RunResult]],
    table: Table,
    readout: Readout,
) -> Family:
    if readout == table.readout:
        return table.family
    values = values_of(arranged, table.metric, readout)
    measures = measures_of(study, table.metric, readout)
    return family_of(table.family.members, values, table.equal, measures)


def _record_of(
    arm: str, against: str, readout: Readout, is_primary: bool, member: Member
) -> dict[str, Any]:
    return {
        "arm": arm,
        "baseline": against,
        "readout": str(readout),
        "is_primary": is_primary,
        "n": member.comparison.n,
        **record_of(member),
    }
