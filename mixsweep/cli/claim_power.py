"""Claim power: the smallest differences that the planned seeds of a study can detect."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sweeps.state.results import RunResult, judged_of
from sweeps.study.claims import Claim
from sweeps.study.study import Study

_INFINITIVES = {"holds": "hold", "fails": "fail"}


# Frozen: the fields are the keys of `claims` in `plan --json`, which scripts read by name;
# tests/mixsweep/cli/test_plan_summary.py fails.
@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimPower:
    """The smallest difference that the test of a claim can detect; unknown numbers are None."""

    says: str
    """The sentence of the claim."""
    n: int
    """Number of planned seeds."""
    tests: int
    """Number of tests that share the significance level."""
    found_sd: float | None
    """Difference that is found with power 0.8, in standard deviations over seeds."""
    never_below: float | None
    """Difference in the unit of the metric, a fraction of finitely many images; no smaller one is
    ever found."""
    found_ratio: float | None
    """Ratio of variances that is found with power 0.8; None for a claim about means."""
    metric: str
    cannot: tuple[str, ...]
    """Verdicts that no results can reach: `holds` or `fails`."""
    pilot: int
    """Number of stored seeds that all arms of the claim have."""
    sd: float | None
    """Standard deviation over these seeds, in the unit of the metric."""
    sd_upper: float | None
    """Upper 95 % limit of `sd`."""
    margin: float | None
    """Largest difference that counts as equal, in the unit of the metric."""
    needed: int | None
    """Number of seeds that find `margin`; None also if it is above 10,000."""


def claim_powers(study: Study, results: Iterable[RunResult] = ()) -> tuple[ClaimPower, ...]:
    """Return the power of each claim of a study; stored results give the spread over seeds."""
    if not study.claims:
        return ()
    from reports.numbers.runs import arrange

    judged, own = judged_of(study, tuple(results))
    arranged = arrange(judged, own)
    return tuple(
        _claim_power(judged, claim, paired_values(judged, claim, arranged))
        for claim in study.claims
    )


def _claim_power(study: Study, claim: Claim, values: Mapping[int, float]) -> ClaimPower:
    from reports.numbers.power import (
        detectable_difference,
        detectable_ratio,
        found_by_looks,
        reachable,
        seeds_to_find,
        upper_sd,
    )
    from reports.numbers.summary import CONFIDENCE, smallest_step, summarise, t_quantile
    from reports.numbers.verdict import claimed_measures, family_size, planned_seeds

    comparison, until = claim.that, study.until
    size, n = family_size(study), planned_seeds(study, claim)
    measures = claimed_measures(study, claim)
    found = never = None
    if n >= 2:
        found = detectable_difference(n, size) if until is None else found_by_looks(until, size)
        sizes = [measures[arm].size for arm in comparison.terms]
        counts = [count for count in sizes if count is not None]
        if not comparison.of and len(comparison.terms) > 1 and len(counts) == len(sizes):
            step = smallest_step([*comparison.terms.values()])
            never = step * t_quantile(n, 1 - (1 - CONFIDENCE) / size) ** 2 / (n * min(counts))
    sd = (summarise(list(values.values())).sd or None) if values else None
    margin = comparison.margin
    if margin is None and comparison.metric == study.headline and not comparison.of:
        margin = study.equivalence
    needed = None
    if sd is not None and margin is not None:
        needed = seeds_to_find(margin / sd, size, is_between=comparison.relation == "within")
    return ClaimPower(
        says=claim.says,
        n=n,
        tests=size,
        found_sd=found,
        never_below=never,
        found_ratio=detectable_ratio(n, size) if comparison.of else None,
        metric=comparison.metric,
        cannot=tuple(sorted({"holds", "fails"} - reachable(comparison, measures, n))),
        pilot=len(values),
        sd=sd,
        sd_upper=None if sd is None else upper_sd(sd, len(values)),
        margin=margin,
        needed=needed,
    )


def paired_values(study: Study, claim: Claim, arranged: Any) -> dict[int, float]:
    """Return the values of a claim at the seeds at which all its arms are stored.

    Empty if the claim needs stored predictions, which take too long to read, is about variances, or
    cannot be judged.
    """
    from reports.numbers.verdict import can_be_judged, numbers_by

    if claim.that.of or not can_be_judged(claim, study):
        return {}
    terms = claim.that.terms
    values = numbers_by(study, {arm: arranged.get(arm, {}) for arm in terms})(claim)
    shared_seeds = set.intersection(*(set(values.get(arm, {})) for arm in terms))
    return {
        seed: sum(factor * values[arm][seed] for arm, factor in terms.items())
        for seed in sorted(shared_seeds)
    }


def spell_power(study: Study, power: ClaimPower) -> str:
    """Return the smallest detectable difference of a claim as text."""
    metric = study.problem.metric(power.metric)

    def shown(value: float) -> str:
        return f"{value * metric.scale:.2g} {metric.difference_unit}".rstrip()

    n, sd = power.n, power.sd
    if power.found_sd is None:
        text = f"n = {n} cannot decide a claim; use at least two seeds, better five"
    elif power.found_ratio is not None:
        text = f"n = {n} detects a ratio of variances of {power.found_ratio:.2g} with a "
        text += "power of at most 0.8, if the values are normal and independent"
    else:
        seeds = f"{n} seeds" if study.until is None else f"at most {n} seeds"
        text = f"{seeds} find a difference of {power.found_sd:.2g} sd over seeds 4 times in 5"
        if sd is not None and power.sd_upper is not None:
            text += (
                f", which is {shown(power.found_sd * sd)} at the sd of {power.pilot} stored seeds "
                f"(upper 95 % limit {shown(power.found_sd * power.sd_upper)})"
            )
    if power.never_below is not None:
        text += f", and never a difference below {shown(power.never_below)}"
    if n >= 2 and power.cannot:
        verbs = " or ".join(_INFINITIVES[name] for name in power.cannot)
        text += f"; no results at n = {n} make the claim {verbs}"
    if power.margin is not None and sd is not None:
        seeds = "more than 10,000 seeds" if power.needed is None else f"{power.needed} seeds"
        text += f"; a margin of {shown(power.margin)} needs {seeds}"
    return f"{power.says}: {text}"
