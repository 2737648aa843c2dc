"""Claim power: what difference each claim of a study can decide with its seeds, before training."""

from typing import Any

from sweeps.study.study import Study


def claim_powers(study: Study) -> list[dict[str, Any]]:
    """Return, for each claim, its number of seeds and the smallest differences that it can decide.

    `found_sd` is the distance from the nearest end of the allowed values that is found 4 times in
    5, in standard deviations over seeds of what is judged. `never_below` is a difference that no
    runs can decide, as counting alone varies more; in the unit of the metric, None where nothing is
    counted. Both are None with fewer than two seeds.
    """
    if not study.claims:
        return []
    from reports.numbers.runs import measures_of
    from reports.numbers.statistics import CONFIDENCE, detectable_difference, t_quantile
    from reports.numbers.verdicts import family_size

    size = family_size(study)
    powers = []
    for claim in study.claims:
        that = claim.that
        n = len(set.intersection(*(set(study.seeds_of(arm)) for arm in that.terms)))
        measures = measures_of(study, that.metric, that.readout or study.readout)
        sizes = [measures[arm].size for arm in that.terms]
        found = never = None
        if n >= 2:
            found = detectable_difference(n, size)
            counted = [count for count in sizes if count is not None]
            if len(that.terms) > 1 and len(counted) == len(sizes):
                never = t_quantile(n, 1 - (1 - CONFIDENCE) / size) ** 2 / (n * min(counted))
        powers.append(
            {"says": claim.says, "n": n, "tests": size, "found_sd": found, "never_below": never}
            | {"metric": that.metric}
        )
    return powers


def spell_powers(study: Study, powers: list[dict[str, Any]]) -> list[str]:
    """Return a line for each claim."""
    lines = []
    for power in powers:
        metric = study.problem.metric(power["metric"])
        if power["found_sd"] is None:
            told = f"n = {power['n']} decides nothing; give two seeds or more, better five"
        else:
            told = f"n = {power['n']} finds {power['found_sd']:.2g} sd over seeds 4 times in 5"
        if power["never_below"] is not None:
            unit = metric.difference_unit
            told += f", and nothing below {power['never_below'] * metric.scale:.2g} {unit}".rstrip()
        lines.append(f"{power['says']}: {told}")
    return lines
