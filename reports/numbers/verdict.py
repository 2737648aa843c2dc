"""Verdict: the result of one claim, and the statistical test that leads to it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from reports.numbers.comparison import (
    MIN_SEEDS_VARIANCE,
    Comparison,
    over_shared,
    ratio_of_variances,
)
from reports.numbers.predicted import Predicted
from reports.numbers.runs import (
    Arranged,
    are_paired,
    complete_runs,
    counted_runs,
    measures_of,
    values_of,
)
from reports.numbers.summary import ANY, Measure
from sweeps.state.statements import Statement
from sweeps.study.claims import Claim, Decision, StatedComparison
from sweeps.study.study import Study

Statements = Mapping[Claim, Statement]
"""The time at which each claim was stated, as the store has recorded it."""

VerdictName = Decision | Literal["equivalent", "unfinished"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The result of one claim: `holds`, `fails`, ..., with measured value, interval and p."""

    claim: Claim
    verdict: VerdictName
    """`holds` or `fails`, or one of three others. `unfinished`: a run of an arm is missing or lacks
    the metric. `undecided`: the runs do not decide the claim, or cannot. `equivalent`, only with
    planned looks: the whole interval lies within the margin around the bound of the claim.
    """
    value: float | None = None
    """The measured value of the claim. For a claim that compares A with B it is A - factor * B,
    with the factor given in the claim; for a claim that compares A with a number it is A.
    """
    low: float | None = None
    """Lower end of the interval of `value`, with the confidence `confidence`; None without one."""
    high: float | None = None
    reference: float | None = None
    """The value that papers print, from the `references` of the study."""
    n: int = 0
    p: float | None = None
    """The p value after Holm's correction over all claims of the study."""
    confidence: float | None = None
    """Confidence of the interval, from Holm's procedure. With planned looks it is the confidence of
    the interval at one look.
    """
    looks: str = ""
    """Look at which the claim was decided or given up, as text."""
    stated: str = ""
    """Text that says whether the claim was stated before its runs; empty if unknown."""
    reason: str = ""
    """The reason why no run can decide the claim, as text; empty if runs can."""

    @property
    def spelled(self) -> str:
        """The verdict as text for tables: `holds`, or `holds at look 3 of 6`."""
        reason = f"({self.reason})" if self.reason else ""
        return " ".join(filter(None, (self.verdict, self.looks, reason)))


Numbers = Callable[[Claim], Mapping[str, Mapping[int, float]]]
"""Function from a claim to its numbers by arm and seed."""


def numbers_by(study: Study, arranged: Arranged, predicted: Predicted | None = None) -> Numbers:
    """Return a function from a claim to the values of its metric, by arm and seed."""

    @cache
    def numbers(claim: Claim) -> Mapping[str, Mapping[int, float]]:
        that = claim.that
        if that.metric in study.problem.measuring.predicted:
            if predicted is None:
                return {}
            return predicted.claimed_values(that.metric) | {
                arm: predicted.values_together(that.metric, arm, that.networks or 1)
                for arm in that.together
            }
        # A run of a later look must not change an earlier one, so a diverged run hides no others.
        counted = counted_runs if study.until is None else complete_runs
        return values_of(arranged, that.metric, that.readout or study.readout, counted)

    return numbers


def difference_of_references(study: Study, claim: Claim) -> float | None:
    """Return the value that papers give for a claim's comparison, to print beside our own.

    It is the value of the arm, or the difference of the arms' values, that the study lists from
    papers (`references`). The result is None if one of these is missing, or if the claim multiplies
    its second side by a factor, has another read-out than the study, or compares variances.
    """
    that = claim.that
    if that.readout not in (None, study.readout) or that.times != 1 or that.of:
        return None
    found = [study.references.get(arm, {}).get(that.metric) for arm in that.terms]
    if any(value is None for value in found):
        return None
    factors = that.terms.values()
    return math.fsum(f * v for f, v in zip(factors, found, strict=True) if v is not None)


def claimed_measures(study: Study, claim: Claim) -> dict[str, Measure]:
    """Return the possible range of each arm's values in the test of a claim."""
    that = claim.that
    measures = measures_of(study, that.metric, that.readout or study.readout)
    # Pseudo-values of ensembles are not fractions of images and may exceed the bounds.
    return measures | dict.fromkeys(that.together, ANY)


def can_be_judged(claim: Claim, study: Study) -> bool:
    """Return True if a study has all arms that a claim compares, evaluated on the same data."""
    arms = claim.that.arms
    return study.arms.keys() >= set(arms) and are_paired(study, arms, claim.that.metric)


def claims_predictions(study: Study) -> bool:
    """Return True if a claim of a study is about stored predictions."""
    return any(claim.that.metric in study.problem.measuring.predicted for claim in study.claims)


def family_size(study: Study) -> int:
    """Return the number of different tests of a study's claims, which Holm's procedure needs."""
    return len({claim_test(study, claim) for claim in study.claims})


def planned_seeds(study: Study, claim: Claim) -> int:
    """Return the largest number of seeds with which a study may judge a claim."""
    if study.until is not None:
        return study.until.sizes[-1]
    return len(set.intersection(*(set(study.seeds_of(arm)) for arm in claim.that.arms)))


ClaimTest = tuple[object, ...]


def claim_test(study: Study, claim: Claim) -> ClaimTest:
    """Return an identifier of a claim's test: metric, read-out, arms, factors, bounds of values.

    Claims with equal identifiers are one test. A claim and its opposite have equal identifiers,
    because their allowed values have the same bounds.
    """
    that = claim.that
    terms = sorted(that.terms.items())
    sign = 1.0 if terms[0][1] > 0 else -1.0
    finite = [end for end in that.allowed if math.isfinite(end)]
    if that.of == "variance":  # the ratio of B to A is 1 over that of A to B
        finite = [round(math.log(end), 12) for end in finite]
    ends = sorted(sign * end for end in finite)
    factors = tuple((arm, sign * factor) for arm, factor in terms)
    together = (that.networks, *sorted(that.together))
    return that.metric, that.readout or study.readout, factors, tuple(ends), together, that.of


MIN_SEEDS_TOGETHER = 3
"""Smallest number of seeds for claims about ensembles, whose jackknife leaves one seed out."""


def least_seeds(that: StatedComparison) -> int:
    """Return the smallest number of seeds at which a claim can have a value and an interval."""
    if that.of == "variance":
        return MIN_SEEDS_VARIANCE
    return 2 if that.networks is None else max(MIN_SEEDS_TOGETHER, that.networks)


def shared_seeds(claim: Claim, values: Mapping[str, Mapping[int, float]]) -> set[int]:
    """Return the seeds at which each arm of a claim has a value."""
    return set.intersection(*(set(values.get(arm, {})) for arm in claim.that.terms))


def unmeasured(
    study: Study, claim: Claim, values: Mapping[str, Mapping[int, float]]
) -> Verdict | None:
    """Return the verdict of a claim whose runs have no ratio of variances, or make no ensemble."""
    n, planned = len(shared_seeds(claim, values)), planned_seeds(study, claim)
    least = least_seeds(claim.that)
    if not can_be_judged(claim, study):
        return None
    if claim.that.together and planned < least:
        why = f"no ensembles, because they need {least} seeds or more"
    elif claim.that.of == "variance" and n >= planned:
        why = "no ratio, because the values of an arm are equal at all seeds, or at all but one"
        if n < least:
            why = f"no ratio, because it needs {least} seeds or more"
    else:
        return None
    return Verdict(claim=claim, verdict="undecided", n=n, reason=why)


def measured(
    study: Study, claim: Claim, values: Mapping[str, Mapping[int, float]]
) -> Comparison | None:
    """Return the measured comparison of a claim's arms, over the seeds that they share."""
    that = claim.that
    if not can_be_judged(claim, study):
        return None
    if that.of == "variance":
        shared = shared_seeds(claim, values)
        left, right = ({seed: values[str(side)][seed] for seed in shared} for side in that.sides)
        return ratio_of_variances(left, right)
    measures = claimed_measures(study, claim)
    return over_shared(
        [(factor, values.get(arm, {}), measures[arm]) for arm, factor in that.terms.items()]
    )
