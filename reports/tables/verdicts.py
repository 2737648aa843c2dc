"""Verdict: what the runs say of each claim of a study, by the statistics of its tables."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mixup_core.problem import Metric
from reports.numbers.arms import equals
from reports.numbers.families import Family, Member, Pair, family_of
from reports.numbers.predicted import Predicted
from reports.numbers.runs import values_of
from reports.numbers.spelling import DASH, spell_csv, spell_interval, spell_number
from reports.tables.captions import spell_family
from reports.tables.listings import Listing
from reports.tables.table import Table, can_be_judged
from sweeps.state.results import RunResult
from sweeps.study.claims import Claim, Comparison, Relation
from sweeps.study.readouts import ClaimReadout
from sweeps.study.study import Study

Outcome = Literal["holds", "fails", "undecided", "unfinished"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A claim and what the runs say of it. Numbers as stored, errors as fractions."""

    claim: Claim
    verdict: Outcome
    """`unfinished` while a seed of an arm is missing or measured no such metric; `undecided` if the
    runs tell neither way."""
    value: float | None = None
    """Left minus right of two arms (the right times its factor), else the mean of the left."""
    low: float | None = None
    """Lower end of the interval of `value`, simultaneous over all comparisons of its metric."""
    high: float | None = None
    reference: float | None = None
    """What the source says of `value`: the number that the claim is about, or the difference of
    the study's references; None if it gives none."""
    n: int = 0
    """Number of seeds."""


def verdicts_of(
    study: Study,
    arranged: Mapping[str, Mapping[int, RunResult]],
    table: Table,
    predicted: Predicted | None = None,
) -> tuple[Verdict, ...]:
    """Return the verdict of each claim, in the order of the study.

    A claim about the metric of the table is judged by the table's own family; those about another
    metric, or the same in another read-out, are a family together.

    Args:
        study: Whose arms the table is of.
        arranged: Its results (`reports.numbers.runs.arrange`).
        table: Made of the same results.
        predicted: What their predictions say, for claims about that; None: nothing is known.
    """
    families: dict[_JudgedBy, Family] = {(table.metric, study.readout, 1.0): table.family}
    for judged_by in {_judged_by(study, claim) for claim in study.claims} - families.keys():
        metric, readout, factor = judged_by
        pairs = [
            (claim.that.left, _right(claim.that))
            for claim in study.claims
            if _judged_by(study, claim) == judged_by and can_be_judged(claim, study)
        ]
        if metric in study.problem.predicted:
            values = predicted.values(metric) if predicted else {}
        else:
            values = values_of(arranged, metric, readout)
        if factor != 1:
            values |= {
                _times(factor, arm): {seed: factor * value for seed, value in by_seed.items()}
                for arm, by_seed in values.items()
            }
        families[judged_by] = family_of(pairs, values, equals(study))
    return tuple(
        _verdict(study, claim, families[_judged_by(study, claim)]) for claim in study.claims
    )


_JudgedBy = tuple[str, ClaimReadout, float]
"""Metric, read-out and factor: what the claims of a family have in common."""


def _judged_by(study: Study, claim: Claim) -> _JudgedBy:
    return claim.that.metric, claim.that.readout or study.readout, claim.that.times


def _right(that: Comparison) -> str | float:
    """Return the right side of a comparison, by the name its values have in a family."""
    return that.right if that.times == 1 else _times(that.times, str(that.right))


def _times(factor: float, arm: str) -> str:
    return f"{factor:g} x {arm}"


def verdict_table(study: Study, verdicts: tuple[Verdict, ...], table: Table) -> Listing:
    """Return the claims with their verdicts and the numbers behind each."""
    families = {_judged_by(study, verdict.claim) for verdict in verdicts}
    return Listing(
        name="verdicts",
        title="Claims of the sources",
        header=("claim", "verdict", "compared", "value", "source says", "n"),
        cells=tuple(
            (
                f"{verdict.claim.says} ({verdict.claim.source})",
                verdict.verdict,
                spell_compared(study, verdict.claim),
                *spell_numbers(study, verdict),
                str(verdict.n),
            )
            for verdict in verdicts
        ),
        caption="Computed from the runs, never written by hand; paired by seed, "
        f"{study.readout}. less, greater: told apart at 5 %; at least, at most: not told to be on "
        "the other side; within: the whole interval lies within the margin. Intervals are "
        f"simultaneous over all comparisons of a metric; of {table.shown.label}: "
        f"{spell_family(table.family)}."
        + (
            " Each other metric, read-out or factor is a family of its own."
            if families - {(table.metric, study.readout, 1.0)}
            else ""
        ),
        records=tuple(verdict_records(verdicts)),
    )


def spell_numbers(study: Study, verdict: Verdict) -> tuple[str, str]:
    """Return the value of a verdict with its interval, and what the source says of it."""
    shown = study.problem.metric(verdict.claim.that.metric)
    scale, digits = shown.scale, shown.digits
    value = reference = DASH
    if verdict.value is not None:
        interval = spell_interval(verdict.low, verdict.high, scale, digits)
        value = spell_number(verdict.value * scale, digits) + interval
    if verdict.reference is not None:
        reference = _spell_written(verdict.reference, shown)
    return value, reference


def spell_compared(study: Study, claim: Claim) -> str:
    """Return what a claim says: `test error, %: uniform less than erm`."""
    that = claim.that
    shown = study.problem.metric(that.metric)
    right = _right(that)
    right = right if isinstance(right, str) else _spell_written(right, shown)
    margin = "" if that.margin is None else f" ± {_spell_written(that.margin, shown)}"
    readout = f", {that.readout}" if that.readout not in (None, study.readout) else ""
    if that.metric in study.problem.predicted:
        readout = " after the last epoch"
    return f"{shown.heading}{readout}: {that.left} {_RELATIONS[that.relation]} {right}{margin}"


def spell_judged(claim: Claim) -> str:
    """Return what the value of a verdict is: `uniform minus erm`, or the arm it is the mean of."""
    left, right = claim.that.left, _right(claim.that)
    return f"{left} minus {right}" if isinstance(right, str) else left


_RELATIONS: Mapping[Relation, str] = {
    "less": "less than",
    "greater": "greater than",
    "at_least": "at least",
    "at_most": "at most",
    "within": "within",
}


def verdicts_csv(verdicts: tuple[Verdict, ...]) -> str:
    """Return `verdicts.csv`: one line per claim, numbers at full precision."""
    if not verdicts:
        return ",".join(_COLUMNS) + "\n"
    return spell_csv(verdict_records(verdicts))


def verdict_records(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """Return the columns of `verdicts.csv` by name, one mapping per claim."""
    return [
        {"says": verdict.claim.says, **{name: getattr(verdict, name) for name in _COLUMNS[1:]}}
        for verdict in verdicts
    ]


_COLUMNS = ("says", "verdict", "value", "low", "high", "reference", "n")


def _verdict(study: Study, claim: Claim, family: Family) -> Verdict:
    pair: Pair = (claim.that.left, _right(claim.that))
    member = family.members.get(pair)
    shift, reference = 0.0, _difference_of_references(study, claim)
    if not isinstance(claim.that.right, str):
        shift = reference = float(claim.that.right)
    expected = _seeds_needed(study, claim)
    if member is None or member.comparison.n < expected:
        n = 0 if member is None else member.comparison.n
        return Verdict(claim=claim, verdict="unfinished", reference=reference, n=n)
    low, high = member.low, member.high
    return Verdict(
        claim=claim,
        verdict=_judged(claim.that, member),
        value=member.comparison.difference + shift,
        low=None if low is None else low + shift,
        high=None if high is None else high + shift,
        reference=reference,
        n=member.comparison.n,
    )


def _judged(that: Comparison, member: Member) -> Outcome:
    """Return what an interval of left minus right says of a comparison."""
    low, high = member.low, member.high
    if low is None or high is None:
        return "undecided"
    is_less, is_greater = high < 0, low > 0
    match that.relation:
        case "less":
            return "holds" if is_less else "fails" if is_greater else "undecided"
        case "greater":
            return "holds" if is_greater else "fails" if is_less else "undecided"
        case "at_least":
            return "fails" if is_less else "holds"
        case "at_most":
            return "fails" if is_greater else "holds"
        case "within":
            margin = that.margin or 0.0
            if -margin <= low and high <= margin:
                return "holds"
            return "fails" if high < -margin or low > margin else "undecided"


def _seeds_needed(study: Study, claim: Claim) -> int:
    """Return the number of seeds of a finished comparison; out of reach if there can be none."""
    if not can_be_judged(claim, study):
        return len(study.seeds) + 1
    return len(set.intersection(*(set(study.seeds_of(arm)) for arm in claim.that.arms)))


def _difference_of_references(study: Study, claim: Claim) -> float | None:
    """Return what the references say of a claim; they are of the study's own read-out."""
    if _judged_by(study, claim)[1:] != (study.readout, 1.0):
        return None
    that = claim.that
    ours = study.references.get(that.left, {}).get(that.metric)
    theirs = study.references.get(str(that.right), {}).get(that.metric)
    return None if ours is None or theirs is None else ours - theirs


def _spell_written(value: float, metric: Metric) -> str:
    """Return a number of a study file; all of its digits where rounding would change it."""
    shown = spell_number(value * metric.scale, metric.digits)
    is_whole = math.isclose(float(shown), value * metric.scale, rel_tol=1e-9)
    return shown if is_whole else f"{value * metric.scale:g}"
