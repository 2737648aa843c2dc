"""Judging: the verdict on each claim of a study. All claims of a study are one family of tests."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reports.numbers.comparison import Comparison
from reports.numbers.families import holm
from reports.numbers.looks import Ends, Looked, ends_if_measured, ends_of
from reports.numbers.predicted import Predicted
from reports.numbers.runs import Arranged, arrange
from reports.numbers.summary import CONFIDENCE
from reports.numbers.verdict import (
    ClaimTest,
    Numbers,
    Statements,
    Verdict,
    claim_test,
    difference_of_references,
    measured,
    numbers_by,
    planned_seeds,
    unmeasured,
)
from sweeps.state.results import RunResult
from sweeps.state.statements import num_changes
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.study import Study

Varied = Mapping[str, tuple[Verdict, ...]]
"""Verdicts under each variant of a study, by its label."""

_LEVEL = 1 - CONFIDENCE


def verdicts_of(
    study: Study,
    arranged: Arranged,
    predicted: Predicted | None = None,
    statements: Statements | None = None,
) -> tuple[Verdict, ...]:
    """Return the verdict of each claim of a study, computed from results, in the study's order.

    A claim is decided at an error level if the interval of its value at that level lies wholly
    inside the allowed values, or wholly outside. Holm's procedure keeps the probability of any
    wrong verdict at 5 %. It covers all claims of the study, of all metrics, also claims whose runs
    are missing. Claims with the same test count once.

    If reports used k other sets of seeds before or after this one, the error level is
    5 % / (1 + k). This bounds the error of the verdict shown, not of all reports together, because
    earlier reports used a higher level. In 20,000 simulated studies whose arms do not differ, at
    least one report decided in 6.3 % of the studies (reports at 5, then 10 seeds) and in 7.6 % (at
    5, 10, 20); without the correction, in 8.3 % and 11.9 %.
    """
    numbers = numbers_by(study, arranged, predicted)
    return judge(study, numbers, statements, ends=ends_of(arranged))


def varied_verdicts(
    study: Study, results: Iterable[RunResult], statements: Statements | None = None
) -> dict[str, tuple[Verdict, ...]]:
    """Return the verdicts of a study's claims under each of its variants, by the variant's label.

    Each variant is judged like a separate study: p values are adjusted for its own claims only.
    Claims about predictions are left out, and claims that another read-out does not change.
    """
    results = tuple(results)
    by_label = {}
    for variant in study.variants:
        under = study.under(variant)
        names = {varied: arm for arm, varied in variant.arms.items()}
        renamed = [
            replace(result, run=replace(result.run, arm=names[result.run.arm]))
            for result in results
            if result.run.arm in names
        ]
        verdicts = verdicts_of(under, arrange(under, renamed), statements=statements)
        predicted = study.problem.measuring.predicted
        by_label[variant.label] = tuple(
            verdict
            for verdict in verdicts
            if verdict.claim.that.metric not in predicted
            and None in (variant.readout, verdict.claim.that.readout)
        )
    return by_label


def spell_variants(verdict: Verdict, varied: Varied) -> str:
    """Return, as text, the variants in which a verdict differs and in which it is the same."""
    different: list[str] = []
    same: list[str] = []
    for label, verdicts in varied.items():
        other = next((v for v in verdicts if v.claim == verdict.claim), None)
        if other is None:
            continue
        differs: list[str] = []
        has_ended = verdict.verdict != "unfinished" and bool(other.looks) and other.n >= verdict.n
        is_left = other.verdict == "unfinished" and has_ended  # no look at the claim will follow
        decision = "undecided" if is_left else other.verdict
        if decision != verdict.verdict:
            differs.append(decision)
        if verdict.value is not None and other.value is not None:
            number = verdict.claim.that.middle
            if (verdict.value - number) * (other.value - number) < 0:
                differs.append("other sign")
        if differs:
            different.append(f"{label}: {', '.join(differs)}")
        else:
            same.append(label)
    return "; ".join([*different, *([f"same under {', '.join(same)}"] if same else [])])


def judge(
    study: Study,
    numbers: Numbers,
    statements: Statements | None = None,
    *,
    ends: Ends | None = None,
) -> tuple[Verdict, ...]:
    """Return the verdict of each claim of a study, computed from given values of the metrics."""
    records = statements or {}
    if study.until is not None:
        ends = ends_if_measured(study, numbers) if ends is None else ends
        verdicts = Looked(study=study, numbers=numbers, ends=ends, statements=records).verdicts
    else:
        verdicts = _verdicts(study, numbers, looks=1 + num_changes(records))
    return tuple(replace(v, stated=str(records.get(v.claim, ""))) for v in verdicts)


def verdict_records(
    verdicts: Iterable[Verdict], varied: Varied | None = None
) -> list[dict[str, Any]]:
    """Return the rows of `verdicts.csv`: one mapping per claim, with values by column name."""
    verdicts = tuple(verdicts)
    has_looks = any(verdict.looks for verdict in verdicts)
    return [
        {
            "says": verdict.claim.says,
            **{name: getattr(verdict, name) for name in COLUMNS[1:]},
            **({"looks": verdict.looks} if has_looks else {}),
            **({"variants": spell_variants(verdict, varied)} if varied else {}),
        }
        for verdict in verdicts
    ]


# Frozen: columns of `verdicts.csv`, which scripts read by name;
# tests/reports/tables/test_claim_tables.py fails.
COLUMNS = (
    "says", "verdict", "value", "low", "high", "reference", "n", "p", "confidence", "stated",
)  # fmt: skip


def _verdicts(study: Study, numbers: Numbers, looks: int) -> tuple[Verdict, ...]:
    compared = [(claim, measured(study, claim, numbers(claim))) for claim in study.claims]
    levels: dict[ClaimTest, float] = {}
    for claim, comparison in compared:
        test = claim_test(study, claim)
        levels.setdefault(test, 1.0)
        if comparison is not None and comparison.n >= planned_seeds(study, claim):
            levels[test] = min(1.0, looks * _level(claim.that, comparison))
    adjusted = dict(zip(levels, holm(list(levels.values())), strict=True))
    num_decided = sum(p <= _LEVEL for p in adjusted.values())
    tests_left = {
        test: len(levels) - min(place, num_decided)
        for place, test in enumerate(sorted(levels, key=levels.__getitem__))
    }
    return tuple(
        (unmeasured(study, claim, numbers(claim)) if comparison is None else None)
        or _verdict(study, claim, comparison, adjusted[test], 1 - _LEVEL / tests_left[test] / looks)
        for claim, comparison in compared
        for test in (claim_test(study, claim),)
    )


def _level(claim: StatedComparison, comparison: Comparison) -> float:
    level = comparison.level(lambda low, high: claim.judge(low, high) != "undecided")
    return 1.0 if level is None else level


def _verdict(
    study: Study, claim: Claim, comparison: Comparison | None, p: float, confidence: float
) -> Verdict:
    result = Verdict(
        claim=claim, verdict="unfinished", reference=difference_of_references(study, claim)
    )
    if comparison is None:
        return result
    result = replace(result, n=comparison.n)
    if comparison.n < planned_seeds(study, claim):
        return result
    result = replace(result, verdict="undecided", value=comparison.value)
    interval = comparison.interval(confidence)
    if interval is None:
        return result
    return replace(
        result,
        verdict=claim.that.judge(*interval) if p <= _LEVEL else "undecided",
        low=interval[0],
        high=interval[1],
        p=p,
        confidence=confidence,
    )
