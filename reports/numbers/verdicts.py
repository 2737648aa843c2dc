"""Verdict: what the runs say of each claim of a study; the claims are a family of their own."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from reports.numbers.predicted import Predicted
from reports.numbers.runs import arrange, measures_of, values_of
from reports.numbers.statistics import CONFIDENCE, Comparison, contrast
from sweeps.state.results import RunResult
from sweeps.state.statements import Statement
from sweeps.study.claims import Claim, Decision, StatedComparison
from sweeps.study.study import Study

VerdictName = Decision | Literal["unfinished"]

_LEVEL = 1 - CONFIDENCE


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A claim and what the runs say of it. Numbers as stored, errors as fractions."""

    claim: Claim
    verdict: VerdictName
    """`unfinished` while a seed of an arm is missing or measured no such metric; `undecided` if the
    runs tell neither way."""
    value: float | None = None
    """Left minus right of two arms (the right times its factor), else the mean of the left."""
    low: float | None = None
    """Lower end of the interval of `value`, at the level `confidence`."""
    high: float | None = None
    reference: float | None = None
    """The source's value: the number that the claim is about, or the difference of
    the study's references; None if it gives none."""
    n: int = 0
    """Number of seeds."""
    p: float | None = None
    """The error level of the whole family of claims at which this one is decided, after Holm: at
    most 5 % exactly where the verdict is `holds` or `fails`. None without an interval."""
    confidence: float | None = None
    """Level of the interval: what Holm's procedure gives this claim."""
    stated: str = ""
    """Text that says if it was stated before its runs; empty: not known."""


def verdicts_of(
    study: Study,
    arranged: Mapping[str, Mapping[int, RunResult]],
    predicted: Predicted | None = None,
    statements: Mapping[Claim, Statement] | None = None,
) -> tuple[Verdict, ...]:
    """Return the verdict of each claim, in the order of the study.

    A claim is decided at an error level if the interval of its value at that level lies wholly
    among the allowed values, or wholly outside of them. Holm's procedure over all claims of the
    study, whatever their metrics and whether their runs are there yet, keeps the probability that
    any verdict is wrong at 5 %. Claims that ask the same of the same arms count once.

    Args:
        study: Its claims are judged.
        arranged: Its results (`reports.numbers.runs.arrange`).
        predicted: What their predictions say, for claims about that; None: nothing is known.
        statements: What the store remembers of the claims. Each launch with more seeds after a look
            halves, thirds, ... the error level: 5 % / (1 + such launches). The first look was at
            5 % already, so this bounds the verdict shown and not the whole road: under no
            difference some look decides in 6.3 % (5, then 10 seeds) and 7.6 % (5, 10, 20) of
            20,000 simulated studies, against 8.3 % and 11.9 % unpaid.
    """

    def values(claim: Claim) -> Mapping[str, Mapping[int, float]]:
        that = claim.that
        if that.metric in study.problem.predicted:
            return predicted.values(that.metric) if predicted else {}
        return values_of(arranged, that.metric, that.readout or study.readout)

    return judge(study, values, statements or {})


def varied_verdicts(study: Study, results: Iterable[RunResult]) -> dict[str, tuple[Verdict, ...]]:
    """Return label of each variant to the verdicts of its claims, those about predictions left out.

    Each variant is judged as a study of its own, so its claims are a family of their own.
    """
    results = tuple(results)
    found = {}
    for variant in study.variants:
        under = study.under(variant)
        names = {varied: arm for arm, varied in variant.arms.items()}
        own = [
            replace(result, run=replace(result.run, arm=names[result.run.arm]))
            for result in results
            if result.run.arm in names
        ]
        verdicts = verdicts_of(under, arrange(under, own))
        predicted = study.problem.predicted
        found[variant.label] = tuple(v for v in verdicts if v.claim.that.metric not in predicted)
    return found


def spell_variants(verdict: Verdict, varied: Mapping[str, tuple[Verdict, ...]]) -> str:
    """Return whether sign and decision of a verdict are those under each variant, or where not."""
    told: list[str] = []
    same: list[str] = []
    for label, verdicts in varied.items():
        other = next((v for v in verdicts if v.claim == verdict.claim), None)
        if other is None:
            continue
        differs: list[str] = []
        if other.verdict != verdict.verdict:
            differs.append(other.verdict)
        if verdict.value is not None and other.value is not None:
            number = verdict.claim.that.number or 0.0
            if (verdict.value - number) * (other.value - number) < 0:
                differs.append("other sign")
        if differs:
            told.append(f"{label}: {', '.join(differs)}")
        else:
            same.append(label)
    return "; ".join([*told, *([f"same under {', '.join(same)}"] if same else [])])


def judge(
    study: Study,
    values: Callable[[Claim], Mapping[str, Mapping[int, float]]],
    statements: Mapping[Claim, Statement] | None = None,
) -> tuple[Verdict, ...]:
    """Return the verdict of each claim from the numbers of the runs that it is about.

    Args:
        study: Its claims are judged, as `verdicts_of` says.
        values: Returns arm to seed to number, of the metric and in the read-out of a claim.
        statements: As for `verdicts_of`.
    """
    known = statements or {}
    looks = 1 + max((statement.extended for statement in known.values()), default=0)
    measured = [_measured(study, claim, values(claim)) for claim in study.claims]
    levels: dict[_Test, float] = {}
    for claim, comparison in zip(study.claims, measured, strict=True):
        test = _test(study, claim)
        levels.setdefault(test, 1.0)
        if comparison is not None and comparison.n >= _seeds_needed(study, claim):
            levels[test] = min(1.0, looks * _level(claim.that, comparison))
    steps = _holm_steps(levels, looks)
    return tuple(
        replace(
            _verdict(study, claim, comparison, *steps[_test(study, claim)]),
            stated=str(known[claim]) if claim in known else "",
        )
        for claim, comparison in zip(study.claims, measured, strict=True)
    )


def difference_of_references(study: Study, claim: Claim) -> float | None:
    """Return what the references say of a claim; they are of the study's own read-out."""
    that = claim.that
    if that.readout not in (None, study.readout) or that.times != 1:
        return None
    found = [study.references.get(arm, {}).get(that.metric) for arm in that.terms]
    if that.number is not None or any(value is None for value in found):
        return that.number
    factors = that.terms.values()
    return math.fsum(f * v for f, v in zip(factors, found, strict=True) if v is not None)


def verdict_records(
    verdicts: Iterable[Verdict], varied: Mapping[str, tuple[Verdict, ...]] | None = None
) -> list[dict[str, Any]]:
    """Return the columns of `verdicts.csv` by name, one mapping per claim.

    A study with variants has one column more, which says where they differ.
    """
    return [
        {
            "says": verdict.claim.says,
            **{name: getattr(verdict, name) for name in COLUMNS[1:]},
            **({"variants": spell_variants(verdict, varied)} if varied else {}),
        }
        for verdict in verdicts
    ]


COLUMNS = (
    "says", "verdict", "value", "low", "high", "reference", "n", "p", "confidence", "stated",
)  # fmt: skip


def can_be_judged(claim: Claim, study: Study) -> bool:
    """Return whether a claim is about arms that the study has, measured on the same data."""
    arms = claim.that.arms
    if not study.arms.keys() >= set(arms):
        return False
    return len({study.problem.population(study.arms[arm]) for arm in arms}) == 1


def family_size(study: Study) -> int:
    """Return the number of different tests among the claims of a study."""
    return len({_test(study, claim) for claim in study.claims})


_Test = tuple[object, ...]


def _test(study: Study, claim: Claim) -> _Test:
    """Return what tells tests apart: the same arms against the same values are one test."""
    that = claim.that
    terms = sorted(that.terms.items())
    sign = 1.0 if terms[0][1] > 0 else -1.0
    ends = sorted(sign * end for end in that.allowed if math.isfinite(end))
    factors = tuple((arm, sign * factor) for arm, factor in terms)
    return that.metric, that.readout or study.readout, factors, tuple(ends)


def _measured(
    study: Study, claim: Claim, values: Mapping[str, Mapping[int, float]]
) -> Comparison | None:
    """Return the value of a claim over the seeds that all of its arms have; None without one."""
    that = claim.that
    if not can_be_judged(claim, study):
        return None
    measures = measures_of(study, that.metric, that.readout or study.readout)
    shared = set.intersection(*(set(values.get(arm, {})) for arm in that.terms))
    if not shared:
        return None
    return contrast(
        [
            (factor, {seed: values[arm][seed] for seed in shared}, measures[arm])
            for arm, factor in that.terms.items()
        ],
    )


def _level(that: StatedComparison, comparison: Comparison) -> float:
    level = comparison.level(lambda low, high: that.judge(low, high) != "undecided")
    return 1.0 if level is None else level


def _holm_steps(levels: Mapping[_Test, float], looks: int) -> dict[_Test, tuple[float, float]]:
    """Return test to its p after Holm and the level of its own interval.

    The levels are multiplied by the number of looks, so the intervals are wider by as much.

    Sorted upwards, the i-th of m (from 0) is decided at 5 % / (m - i) if all before it are; those
    that are not decided keep the level at which the first of them was not.
    """
    steps: dict[_Test, tuple[float, float]] = {}
    reached, own = 0.0, None
    for place, test in enumerate(sorted(levels, key=lambda test: levels[test])):
        left = len(levels) - place
        reached = min(1.0, max(reached, left * levels[test]))
        if own is None and reached > _LEVEL:
            own = _LEVEL / left
        steps[test] = reached, 1 - (_LEVEL / left if own is None else own) / looks
    return steps


def _verdict(
    study: Study, claim: Claim, comparison: Comparison | None, p: float, confidence: float
) -> Verdict:
    found = Verdict(
        claim=claim, verdict="unfinished", reference=difference_of_references(study, claim)
    )
    if comparison is None:
        return found
    found = replace(found, n=comparison.n)
    if comparison.n < _seeds_needed(study, claim):
        return found
    found = replace(found, verdict="undecided", value=comparison.difference)
    interval = comparison.interval(confidence)
    if interval is None:
        return found
    return replace(
        found,
        verdict=claim.that.judge(*interval) if p <= _LEVEL else "undecided",
        low=interval[0],
        high=interval[1],
        p=p,
        confidence=confidence,
    )


def _seeds_needed(study: Study, claim: Claim) -> int:
    """Return the number of seeds of a finished comparison."""
    return len(set.intersection(*(set(study.seeds_of(arm)) for arm in claim.that.arms)))
