"""Verdict: the result of one claim, and the test that the claim stands for."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from reports.numbers.comparison import Comparison, contrast
from reports.numbers.predicted import Predicted
from reports.numbers.runs import measures_of, values_of
from reports.numbers.shares import ANY
from sweeps.state.results import RunResult
from sweeps.study.claims import Claim, Decision
from sweeps.study.study import Study

VerdictName = Decision | Literal["equivalent", "unfinished"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A claim and its result. Numbers are in the unit of storage, errors as fractions."""

    claim: Claim
    verdict: VerdictName
    """`unfinished` while a seed of an arm is missing or lacks the metric. `undecided` if the runs
    do not decide the claim. `equivalent`, if seeds are added until claims are decided, and the
    whole interval lies within the study's margin around the bound of the claim.
    """
    value: float | None = None
    """Left minus right of two arms (the right times its factor), else the mean of the left."""
    low: float | None = None
    """Lower end of the interval of `value`, at the level `confidence`."""
    high: float | None = None
    reference: float | None = None
    """The source's value: the number in the claim, or the difference of the study's references;
    None if there is none.
    """
    n: int = 0
    """Number of seeds."""
    p: float | None = None
    """Error level of the whole family of claims at which this one is decided, by Holm's procedure:
    at most 5 % exactly if the verdict is `holds` or `fails`. None without an interval.
    """
    confidence: float | None = None
    """Confidence of the interval, from Holm's procedure. If seeds are added until claims are
    decided, it is the confidence at the look, for intervals that hold over all looks together.
    """
    looks: str = ""
    """Look at which the claim was decided or given up, as text; empty without planned looks."""
    stated: str = ""
    """Text that states whether the claim was recorded before its runs; empty if not known."""

    @property
    def spelled(self) -> str:
        """The verdict as text for tables: `holds`, or `holds at look 3 of 6`."""
        return f"{self.verdict} {self.looks}".rstrip()


Numbers = Callable[[Claim], Mapping[str, Mapping[int, float]]]
"""Function from a claim to numbers by arm and seed, in the metric and read-out of the claim."""


def numbers_by(
    study: Study,
    arranged: Mapping[str, Mapping[int, RunResult]],
    predicted: Predicted | None = None,
) -> Numbers:
    """Return a function that reads the numbers of a claim from results and predictions."""

    def numbers(claim: Claim) -> Mapping[str, Mapping[int, float]]:
        that = claim.that
        if that.metric in study.problem.predicted:
            if predicted is None:
                return {}
            return predicted.values(that.metric) | {
                arm: predicted.values_together(that.metric, arm, that.networks or 1)
                for arm in that.together
            }
        return values_of(arranged, that.metric, that.readout or study.readout)

    return numbers


def difference_of_references(study: Study, claim: Claim) -> float | None:
    """Return a claim's value computed from the study's references; None if it does not follow.

    References are in the study's own read-out.
    """
    that = claim.that
    if that.readout not in (None, study.readout) or that.times != 1:
        return None
    found = [study.references.get(arm, {}).get(that.metric) for arm in that.terms]
    if that.number is not None or any(value is None for value in found):
        return that.number
    factors = that.terms.values()
    return math.fsum(f * v for f, v in zip(factors, found, strict=True) if v is not None)


def can_be_judged(claim: Claim, study: Study) -> bool:
    """Return whether the study has all arms of a claim, evaluated on the same data."""
    arms = claim.that.arms
    if not study.arms.keys() >= set(arms):
        return False
    return len({study.problem.population(study.arms[arm]) for arm in arms}) == 1


def family_size(study: Study) -> int:
    """Return the number of different tests among the claims of a study."""
    return len({claim_test(study, claim) for claim in study.claims})


ClaimTest = tuple[object, ...]


def claim_test(study: Study, claim: Claim) -> ClaimTest:
    """Return the identity of a claim's test: same arms and same allowed values are one test."""
    that = claim.that
    terms = sorted(that.terms.items())
    sign = 1.0 if terms[0][1] > 0 else -1.0
    ends = sorted(sign * end for end in that.allowed if math.isfinite(end))
    factors = tuple((arm, sign * factor) for arm, factor in terms)
    together = (that.networks, *sorted(that.together))
    return that.metric, that.readout or study.readout, factors, tuple(ends), together


def measured(
    study: Study, claim: Claim, values: Mapping[str, Mapping[int, float]]
) -> Comparison | None:
    """Return the value of a claim over the common seeds of its arms; None if there is none."""
    that = claim.that
    if not can_be_judged(claim, study):
        return None
    measures = measures_of(study, that.metric, that.readout or study.readout)
    # Pseudo-values of ensembles are not fractions of images and may exceed the bounds.
    measures |= dict.fromkeys(that.together, ANY)
    shared = set.intersection(*(set(values.get(arm, {})) for arm in that.terms))
    if not shared:
        return None
    return contrast(
        [
            (factor, {seed: values[arm][seed] for seed in shared}, measures[arm])
            for arm, factor in that.terms.items()
        ],
    )
