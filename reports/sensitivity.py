"""Sensitivity: the comparisons of a table under every read-out that was measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from reports.families import Family, Member, family_of
from reports.listings import Listing, spell_member
from reports.runs import values_of
from reports.spelling import spell_heading, spell_p
from reports.tables import Table
from sweeps.readouts import Averaged, Last, MeanOfLast, Readout
from sweeps.results import RunResult

_FEW = 3
"""Evaluations whose mean is shown where the study names no number."""


def sensitivity_table(
    arranged: Mapping[str, Mapping[int, RunResult]], table: Table
) -> Listing | None:
    """Return the differences from the baseline under each read-out; None if one was measured.

    Args:
        arranged: Results of the arms of the table (`reports.runs.arrange`).
        table: Made of the same results.
    """
    families = {
        readout: family
        for readout in _readouts(table)
        if (family := _family(arranged, table, readout)).members
    }
    if len(families) < 2 or table.readout not in families:
        return None
    pairs = _pairs(table)
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
        title="The same comparisons under other read-outs",
        header=(
            "comparison",
            "read-out",
            spell_heading(table.shown.label, table.shown),
            "n",
            "p",
        ),
        cells=tuple(cells),
        caption="Of the same runs. The primary read-out was named before; intervals and p are "
        "simultaneous over the comparisons of one read-out, not over the read-outs. "
        + " ".join(
            _changes(table.readout, pairs, families) or ["No sign and no decision at 5 % changes."]
        ),
        records=tuple(records),
    )


def changed_by_readout(listing: Listing | None) -> list[str]:
    """Return what the caption of the main table says of a sensitivity table."""
    if listing is None or listing.caption.endswith("changes."):
        return []
    return ["a sign or a decision at 5 % depends on the read-out (sensitivity table)"]


def _readouts(table: Table) -> dict[Readout, None]:
    """Return the read-outs to try, the primary first.

    A mean over records is none where they do not stand one epoch after the other.
    """
    primary = table.readout
    mean = primary if isinstance(primary, MeanOfLast) else MeanOfLast(evaluations=_FEW)
    means = (mean,) if table.problem.axis.metric is None else ()
    return dict.fromkeys((primary, Last(), *means, Averaged()))


def _family(
    arranged: Mapping[str, Mapping[int, RunResult]], table: Table, readout: Readout
) -> Family:
    if readout == table.readout:
        return table.family
    values = values_of(arranged, table.metric, readout)
    return family_of(table.family.members, values, table.equal)


def _pairs(table: Table) -> list[tuple[str, str]]:
    """Return the pairs of arms of the table's family, each once."""
    found: dict[frozenset[str], tuple[str, str]] = {}
    for arm, against in table.family.members:
        if isinstance(against, str):
            sides = frozenset({table.equal[arm], table.equal[against]})
            if len(sides) == 2:
                found.setdefault(sides, (arm, against))
    return list(found.values())


def _changes(
    main: Readout, pairs: Sequence[tuple[str, str]], families: Mapping[Readout, Family]
) -> list[str]:
    """Return a sentence for each comparison whose sign or decision is not the main read-out's."""
    sentences = []
    for arm, against in pairs:
        primary = families[main].members.get((arm, against))
        for readout, family in families.items():
            other = family.members.get((arm, against))
            if primary is None or other is None:
                continue
            changed = []
            if primary.comparison.difference * other.comparison.difference < 0:
                changed.append("has the other sign")
            if primary.is_told != other.is_told:
                changed.append(f"is {'' if other.is_told else 'not '}told from 0 at 5 %")
            if changed:
                sentences.append(
                    f"By the {readout}, {arm} minus {against} {' and '.join(changed)}."
                )
    return sentences


def _record_of(
    arm: str, against: str, readout: Readout, is_primary: bool, member: Member
) -> dict[str, Any]:
    comparison = member.comparison
    return {
        "arm": arm,
        "baseline": against,
        "readout": str(readout),
        "is_primary": is_primary,
        "n": comparison.n,
        "difference": comparison.difference,
        "sd": comparison.sd,
        "ci_low": comparison.ci_low,
        "ci_high": comparison.ci_high,
        "p": comparison.p,
        "p_adjusted": member.p,
        "difference_low": member.low,
        "difference_high": member.high,
    }
