"""Looks cost: how many seeds planned looks will need to decide the claims, from simulations."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from mixsweep.cli.claim_power import paired_values
from mixsweep.cli.hardware import Hardware
from mixsweep.launching.costs import work_to_train
from mixup_core.store.checkpoints import Store
from sweeps.running.progress import spell_duration
from sweeps.state.results import RunResult, read_results, sound_stages
from sweeps.state.stages import plan_study
from sweeps.study.claims import Claim
from sweeps.study.study import Study

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EFFECTS = (0.0, 0.5, 1.0, 2.0)
"""True effects that are simulated while no two seeds are stored: distances between a true value and
the limit of its claim, in standard deviations over seeds."""


# Frozen: the fields are the keys of `looks` in `plan --json`, which scripts read by name;
# tests/mixsweep/cli/test_plan_summary.py fails.
@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """Runs of a study once all its claims are decided, and their cost; means of simulations."""

    runs: float
    to_run: float
    seconds: float | None
    """Wall-clock seconds of training; None before a first measured epoch."""
    gpu_hours: float | None
    cost: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LooksCost:
    """The expected and the largest cost of a study that adds seeds until it decides its claims."""

    at: tuple[int, ...]
    """Numbers of seeds at which the claims are tested."""
    open: int
    """Number of claims that are not decided."""
    most: Totals
    simulated: int
    """Number of simulated studies behind each mean."""
    expected: Totals | None = None
    """Mean if new seeds vary like the stored ones; None if fewer than two seeds are stored."""
    expected_by_sd: dict[str, Totals] | None = None
    """Means for each of `EFFECTS`, if fewer than two seeds are stored; otherwise None."""


def looks_cost(study: Study, store: Store, hardware: Hardware) -> LooksCost:
    """Simulate how many seeds a study needs to decide its claims.

    Values at further seeds are drawn from a distribution fitted to those of the first seeds.
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

    def totals(reached: "dict[str, NDArray[np.int64]]") -> Totals:
        chances = [float((reached[arm] > places[seed]).mean()) for arm, seed in pending]
        busy = None if work is None else sum(map(operator.mul, work, chances))
        return Totals(
            runs=sum(float(reached[arm].mean()) for arm in bare.arms),
            to_run=sum(chances),
            seconds=None if busy is None else busy / hardware.slots,
            gpu_hours=hardware.gpu_hours(busy),
            cost=hardware.cost(busy),
        )

    fixed = {arm: np.array([number]) for arm, number in with_companions(bare, most).items()}
    cost = LooksCost(at=study.until.sizes, open=len(claims), most=totals(fixed), simulated=STUDIES)
    pilot = _pilot(bare, results, claims)
    if not claims or pilot is not None:
        return replace(cost, expected=totals(_ends(study, claims, pilot)))
    by_effect = {f"{effect:g}": totals(_ends(study, claims, effect)) for effect in EFFECTS}
    return replace(cost, expected_by_sd=by_effect)


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


def spell_looks(looks: LooksCost, slots: int) -> Iterator[tuple[str, str]]:
    """Yield the expected cost of further seeds as lines, each as a label and a text."""
    claims = "1 claim" if looks.open == 1 else f"{looks.open} claims"
    yield "looks", f"at {', '.join(map(str, looks.at))} seeds; {claims} open"
    if not looks.open:
        return
    if looks.expected is not None:
        expected = _spell_totals(looks.expected, slots)
        yield "expected", f"{expected}, if new seeds vary like the stored ones"
    for effect, totals in (looks.expected_by_sd or {}).items():
        distance = f"each true value is {effect} sd over seeds from the limit of its claim"
        yield "expected", f"{_spell_totals(totals, slots)}, if {distance}"
    yield "at most", _spell_totals(looks.most, slots)


def _spell_totals(totals: Totals, slots: int) -> str:
    text = f"{totals.runs:.0f} runs, {totals.to_run:.0f} to run"
    if totals.seconds is not None:
        text += f", {spell_duration(totals.seconds)} on {slots} slots"
    if totals.gpu_hours is not None:
        text += f", {totals.gpu_hours:.2f} GPU-hours"
    return text if totals.cost is None else f"{text}, cost {totals.cost:.2f}"
