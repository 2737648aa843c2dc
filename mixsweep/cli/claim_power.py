"""Claim power: how small a difference between arms a study can detect, and with how many seeds.

A claim is a sentence of a paper that the study tests, such as "A has a lower error than B".
"""

from collections.abc import Iterable
from typing import Any

from sweeps.state.results import RunResult
from sweeps.study.claims import Claim
from sweeps.study.study import Study

_INFINITIVES = {"holds": "hold", "fails": "fail"}


def claim_powers(study: Study, results: Iterable[RunResult] = ()) -> list[dict[str, Any]]:
    """Return, for each claim of a study, how small a difference its test can detect.

    Each claim gives one dict. The value of a claim is the difference that it is about, such as the
    error of one arm minus that of another; its limit is the number that this value must not pass
    for the claim to hold, such as 0. `n` is the number of planned seeds. `found_sd` is the smallest
    distance between the true value of the claim and its limit that the test detects with power 0.8,
    in standard deviations (sd) of the value over seeds. With `n` seeds the test never detects a
    difference below `never_below` (in the unit of the metric), because the metric is a fraction of
    a finite number of images; None if it is no such fraction, or if the claim is about one arm.
    `found_sd` and `never_below` are None with fewer than two seeds. `cannot` lists the verdicts
    (`holds`, `fails`) that no results can reach with `n` seeds. `found_ratio` is for a claim about
    variances: the smallest ratio that is detected with power 0.8 if the values of both arms are
    normal and independent.

    `pilot` is the number of stored seeds that all arms of the claim have, `sd` the standard
    deviation of the claim's value over these seeds, and `sd_upper` its upper 95 % confidence limit.
    `margin` is the largest difference that counts as equal: that of the claim, or else, for the
    headline metric, that of the study; None if there is neither. `needed` is the number of seeds at
    which a difference as large as the margin is detected with power 0.8, given this sd. `sd`,
    `sd_upper` and `needed` are None if `pilot` is less than 2; `needed` also without a margin, or
    if 10,000 seeds are too few.
    """
    if not study.claims:
        return []
    from reports.numbers.power import (
        detectable_difference,
        detectable_ratio,
        found_by_looks,
        planned_seeds,
        reachable,
    )
    from reports.numbers.runs import arrange, measures_of
    from reports.numbers.summary import CONFIDENCE, t_quantile
    from reports.numbers.verdict import family_size

    size, arranged = family_size(study), arrange(study, results)
    powers = []
    for claim in study.claims:
        that = claim.that
        n = planned_seeds(study, claim)
        measures = measures_of(study, that.metric, that.readout or study.readout)
        sizes = [measures[arm].size for arm in that.terms]
        reached = reachable(that, measures, n)
        found = never = None
        if n >= 2:
            until = study.until
            found = detectable_difference(n, size) if until is None else found_by_looks(until, size)
            counted = [count for count in sizes if count is not None]
            if not that.of and len(that.terms) > 1 and len(counted) == len(sizes):
                never = t_quantile(n, 1 - (1 - CONFIDENCE) / size) ** 2 / (n * min(counted))
        powers.append(
            {"says": claim.says, "n": n, "tests": size, "found_sd": found, "never_below": never}
            | {"found_ratio": detectable_ratio(n, size) if that.of else None}
            | {"metric": that.metric, "cannot": sorted({"holds", "fails"} - reached)}
            | _from_pilot(study, claim, paired_values(study, claim, arranged), size)
        )
    return powers


def paired_values(study: Study, claim: Claim, arranged: Any) -> dict[int, float]:
    """Return the values of a claim by seed, such as the error of one arm minus that of another.

    Only seeds at which all arms of the claim are stored are included. The dict is empty if the
    metric is computed from stored predictions (logits), because reading these takes too long, if
    the claim is about variances, or if arms are missing in the study or evaluated on other data.
    """
    from reports.numbers.verdict import can_be_judged, numbers_by

    if claim.that.of or not can_be_judged(claim, study):
        return {}
    terms = claim.that.terms
    values = numbers_by(study, {arm: arranged.get(arm, {}) for arm in terms})(claim)
    shared = set.intersection(*(set(values.get(arm, {})) for arm in terms))
    return {
        seed: sum(factor * values[arm][seed] for arm, factor in terms.items())
        for seed in sorted(shared)
    }


def _from_pilot(study: Study, claim: Claim, values: dict[int, float], size: int) -> dict[str, Any]:
    from reports.numbers.power import sd_of, seeds_to_find, upper_sd

    that, sd = claim.that, sd_of(list(values.values()))
    margin = that.margin
    if margin is None and that.metric == study.headline and not that.of:
        margin = study.equivalence
    needed = None
    if sd is not None and margin is not None:
        needed = seeds_to_find(margin / sd, size, is_between=that.relation == "within")
    return {
        "pilot": len(values),
        "sd": sd,
        "sd_upper": None if sd is None else upper_sd(sd, len(values)),
        "margin": margin,
        "needed": needed,
    }


def spell_powers(study: Study, powers: list[dict[str, Any]]) -> list[str]:
    """Return the smallest detectable differences (from `claim_powers`) as text, one per claim."""
    lines = []
    for power in powers:
        metric = study.problem.metric(power["metric"])

        def shown(value: float, metric: Any = metric) -> str:
            return f"{value * metric.scale:.2g} {metric.difference_unit}".rstrip()

        n, sd = power["n"], power["sd"]
        if power["found_sd"] is None:
            told = f"n = {n} cannot decide a claim; use at least two seeds, better five"
        elif power["found_ratio"] is not None:
            told = f"n = {n} detects a ratio of variances of {power['found_ratio']:.2g} with a "
            told += "power of at most 0.8, if the values are normal and independent"
        else:
            seeds = f"{n} seeds" if study.until is None else f"at most {n} seeds"
            told = (
                f"{seeds} find a difference of {power['found_sd']:.2g} sd over seeds 4 times in 5"
            )
            if sd is not None:
                told += (
                    f", which is {shown(power['found_sd'] * sd)} at the sd of {power['pilot']} "
                    f"stored seeds (upper 95 % limit "
                    f"{shown(power['found_sd'] * power['sd_upper'])})"
                )
        if power["never_below"] is not None:
            told += f", and never a difference below {shown(power['never_below'])}"
        if n >= 2 and power["cannot"]:
            verbs = " or ".join(_INFINITIVES[name] for name in power["cannot"])
            told += f"; no results at n = {n} make the claim {verbs}"
        if power["margin"] is not None and sd is not None:
            needed = power["needed"]
            told += f"; a margin of {shown(power['margin'])} needs " + (
                "more than 10,000 seeds" if needed is None else f"{needed} seeds"
            )
        lines.append(f"{power['says']}: {told}")
    return lines
