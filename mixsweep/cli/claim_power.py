"""Claim power: what the planned seeds can detect, and how many planned looks will need."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from mixsweep.launching.costs import work_to_train
from mixup_core.store.checkpoints import Store
from sweeps.running.progress import spell_duration
from sweeps.state.results import RunResult, read_results, sound_stages
from sweeps.state.stages import plan_study
from sweeps.study.budget import SECONDS_PER_HOUR
from sweeps.study.claims import Claim
from sweeps.study.study import Study

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_INFINITIVES = {"holds": "hold", "fails": "fail"}


def claim_powers(study: Study, results: Iterable[RunResult] = ()) -> list[dict[str, Any]]:
    """Return, for each claim of a study, how small a difference its test can detect.

    With the `n` planned seeds, the test of a claim finds a difference of `found_sd` (in standard
    deviations over seeds) with power 0.8, and never one below `never_below` (in the unit of the
    metric, a fraction of finitely many images); for a claim about variances, it finds a ratio of
    `found_ratio`. `cannot` lists the verdicts that no results can reach.
    `pilot` is the number of stored seeds that all arms have, `sd` their standard deviation,
    `sd_upper` its upper 95 % limit, and `needed` the number of seeds that find `margin`, the
    largest difference that counts as equal. What is not known is None.
    """
    if not study.claims:
        return []
    from reports.numbers.power import (
        detectable_difference,
        detectable_ratio,
        found_by_looks,
        reachable,
    )
    from reports.numbers.runs import arrange, measures_of
    from reports.numbers.summary import CONFIDENCE, t_quantile
    from reports.numbers.verdict import family_size, planned_seeds

    size, arranged = family_size(study), arrange(study, results)
    powers = []
    for claim in study.claims:
        comparison = claim.that
        n = planned_seeds(study, claim)
        measures = measures_of(study, comparison.metric, comparison.readout or study.readout)
        sizes = [measures[arm].size for arm in comparison.terms]
        verdicts = reachable(comparison, measures, n)
        found = never = None
        if n >= 2:
            until = study.until
            found = detectable_difference(n, size) if until is None else found_by_looks(until, size)
            counts = [count for count in sizes if count is not None]
            if not comparison.of and len(comparison.terms) > 1 and len(counts) == len(sizes):
                never = t_quantile(n, 1 - (1 - CONFIDENCE) / size) ** 2 / (n * min(counts))
        powers.append(
            # Frozen: keys of `claims` in `plan --json`, which scripts read by name;
            # tests/mixsweep/cli/test_claim_power.py fails.
            {"says": claim.says, "n": n, "tests": size, "found_sd": found, "never_below": never}
            | {"found_ratio": detectable_ratio(n, size) if comparison.of else None}
            | {"metric": comparison.metric, "cannot": sorted({"holds", "fails"} - verdicts)}
            | _from_pilot(study, claim, paired_values(study, claim, arranged), size)
        )
    return powers


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


def _from_pilot(study: Study, claim: Claim, values: dict[int, float], size: int) -> dict[str, Any]:
    """Return the sd of a claim's value over stored runs, and the seeds that its margin needs."""
    from reports.numbers.power import seeds_to_find, upper_sd
    from reports.numbers.summary import summarise

    comparison = claim.that
    sd = (summarise(list(values.values())).sd or None) if values else None
    margin = comparison.margin
    if margin is None and comparison.metric == study.headline and not comparison.of:
        margin = study.equivalence
    needed = None
    if sd is not None and margin is not None:
        needed = seeds_to_find(margin / sd, size, is_between=comparison.relation == "within")
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
            text = f"n = {n} cannot decide a claim; use at least two seeds, better five"
        elif power["found_ratio"] is not None:
            text = f"n = {n} detects a ratio of variances of {power['found_ratio']:.2g} with a "
            text += "power of at most 0.8, if the values are normal and independent"
        else:
            seeds = f"{n} seeds" if study.until is None else f"at most {n} seeds"
            text = (
                f"{seeds} find a difference of {power['found_sd']:.2g} sd over seeds 4 times in 5"
            )
            if sd is not None:
                text += (
                    f", which is {shown(power['found_sd'] * sd)} at the sd of {power['pilot']} "
                    f"stored seeds (upper 95 % limit "
                    f"{shown(power['found_sd'] * power['sd_upper'])})"
                )
        if power["never_below"] is not None:
            text += f", and never a difference below {shown(power['never_below'])}"
        if n >= 2 and power["cannot"]:
            verbs = " or ".join(_INFINITIVES[name] for name in power["cannot"])
            text += f"; no results at n = {n} make the claim {verbs}"
        if power["margin"] is not None and sd is not None:
            needed = power["needed"]
            text += f"; a margin of {shown(power['margin'])} needs " + (
                "more than 10,000 seeds" if needed is None else f"{needed} seeds"
            )
        lines.append(f"{power['says']}: {text}")
    return lines


EFFECTS = (0.0, 0.5, 1.0, 2.0)
"""True effects that are simulated while no two seeds are stored: distances between a true value and
the limit of its claim, in standard deviations over seeds."""


def foresee_looks(
    study: Study, store: Store, slots: int, gpus: float | None = None, price: float | None = None
) -> dict[str, Any]:
    """Simulate how many seeds a study needs to decide its claims; return expected and largest cost.

    Values at further seeds are drawn from a distribution fitted to those of the first seeds. If
    fewer than two seeds are stored, there is one simulation for each of `EFFECTS`.
    """
    import numpy as np

    from reports.numbers.looks import stored_looks, with_companions
    from reports.numbers.power import STUDIES

    assert study.until is not None
    bare = replace(study, reached={})
    results = read_results(bare.runs(), store)
    largest = plan_study(bare, store, sound=sound_stages(results))
    claims = stored_looks(bare, store).open_claims
    most = dict(study.reached) | {
        arm: study.until.sizes[-1] for claim in claims for arm in claim.that.arms
    }
    work = work_to_train(largest, results)
    pending = [(planned.run.arm, planned.run.seed) for planned in largest.pending]
    places = {seed: place for place, seed in enumerate(bare.seeds)}

    def counted(reached: "dict[str, NDArray[np.int64]]") -> dict[str, Any]:
        chances = {run: float((reached[run[0]] > places[run[1]]).mean()) for run in pending}
        totals: dict[str, Any] = {
            "runs": sum(float(reached[arm].mean()) for arm in bare.arms),
            "to_run": sum(chances.values()),
            "seconds": None,
        }
        if work is not None:
            busy = sum(map(operator.mul, work, chances.values()))
            hours = busy / SECONDS_PER_HOUR * (gpus or 1.0)
            totals["seconds"] = busy / slots
            totals["gpu_hours"] = hours if gpus else None
            totals["cost"] = None if price is None else hours * price
        return totals

    fixed = {arm: np.array([number]) for arm, number in with_companions(bare, most).items()}
    foreseen: dict[str, Any] = {
        "at": list(study.until.sizes),
        "open": len(claims),
        "most": counted(fixed),
        "simulated": STUDIES,
    }
    pilot = _pilot(bare, results, claims)
    if not claims or pilot is not None:
        return foreseen | {"expected": counted(_ends(study, claims, pilot))}
    by_effect = {f"{effect:g}": counted(_ends(study, claims, effect)) for effect in EFFECTS}
    return foreseen | {"expected_by_sd": by_effect}


def _pilot(
    bare: Study, results: Sequence[RunResult], claims: Sequence[Claim]
) -> list[dict[int, float]] | None:
    """Return the stored values of each undecided claim by seed; None if there are fewer than two.

    Only seeds at which the values of all undecided claims are stored are used.
    """
    from reports.numbers.runs import arrange

    arranged = arrange(bare, results)
    values = [paired_values(bare, claim, arranged) for claim in claims]
    shared: set[int] = set.intersection(*map(set, values)) if values else set()
    seeds = [*takewhile(shared.__contains__, bare.seeds)]  # seeds after a gap are simulated
    if len(seeds) < 2:
        return None
    return [{seed: of_claim[seed] for seed in seeds} for of_claim in values]


def _ends(
    study: Study, claims: Sequence[Claim], pilot: list[dict[int, float]] | float | None
) -> "dict[str, NDArray[np.int64]]":
    """Return the numbers of seeds that each arm has at the end of each simulated study."""
    import numpy as np

    from reports.numbers.looks import outcome_of, with_companions
    from reports.numbers.power import draw_after, draw_effects, foresee
    from reports.numbers.verdict import family_size

    if pilot is None:
        return {arm: np.array([number]) for arm, number in study.reached.items()}
    assert study.until is not None

    def decides(claim: Claim, low: float, high: float) -> bool:
        if isinstance(pilot, float):
            return low > 0 or high < 0
        return outcome_of(study, claim, low, high) != "undecided"

    if isinstance(pilot, float):
        drawn, after = draw_effects(study.until, [pilot] * len(claims)), 0
    else:
        sizes = [n for n in study.until.sizes if n < max(study.reached.values())]
        drawn, after = draw_after(study.until, pilot), max(sizes, default=0)
    foreseen = foresee(
        study.until, [partial(decides, claim) for claim in claims], drawn,
        tests=family_size(study), after=after,
    )  # fmt: skip
    arms = [frozenset(claim.that.arms) for claim in claims]
    of_arm = {arm: foreseen.reached(arms, arm, number) for arm, number in study.reached.items()}
    studies = [
        with_companions(study, {arm: int(seeds[place]) for arm, seeds in of_arm.items()})
        for place in range(len(foreseen.seeds))
    ]
    return {arm: np.array([reached[arm] for reached in studies]) for arm in study.arms}


def tell_looks(looks: dict[str, Any], slots: int) -> dict[str, list[str]]:
    """Return the expected cost of further seeds (from `foresee_looks`) as texts by their label."""
    claims = "1 claim" if looks["open"] == 1 else f"{looks['open']} claims"
    texts = {"looks": [f"at {', '.join(map(str, looks['at']))} seeds; {claims} open"]}
    if not looks["open"]:
        return texts
    if "expected" in looks:
        expected = _spell(looks["expected"], slots)
        texts["expected"] = [f"{expected}, if new seeds vary like the stored ones"]
    else:
        texts["expected"] = [
            f"{_spell(totals, slots)}, if each true value is {effect} sd over seeds from the limit "
            "of its claim"
            for effect, totals in looks["expected_by_sd"].items()
        ]
    return texts | {"at most": [_spell(looks["most"], slots)]}


def _spell(totals: dict[str, Any], slots: int) -> str:
    text = f"{totals['runs']:.0f} runs, {totals['to_run']:.0f} to run"
    if totals["seconds"] is None:
        return text
    money = "" if totals.get("cost") is None else f", cost {totals['cost']:.2f}"
    hours = totals.get("gpu_hours")
    used = "" if hours is None else f", {hours:.2f} GPU-hours"
    return f"{text}, {spell_duration(totals['seconds'])} on {slots} slots{used}{money}"
