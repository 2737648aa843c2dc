"""Foresight: simulation of the number of seeds that planned looks are likely to need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mixup_core.arrays import Floats
from reports.numbers.course import Decides, chance_at_the_end
from reports.numbers.summary import CONFIDENCE
from sweeps.study.bounds import nominal_levels
from sweeps.study.until_decided import UntilDecided

STUDIES = 300
"""Number of simulated studies; a mean number of seeds then has a standard error of at most 0.5 of
20.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreseen:
    """The number of seeds and the decision of each claim in simulated studies."""

    seeds: NDArray[np.int64]
    """(studies, claims): number of seeds at the last look at a claim."""
    is_decided: NDArray[np.bool_]
    """(studies, claims): true if that look decided the claim."""

    def reached(self, arms: Sequence[frozenset[str]], arm: str, at_least: int) -> NDArray[np.int64]:
        """Return the number of seeds of an arm in each study.

        Args:
            arms: The arms of each claim.
            arm: The arm.
            at_least: Number of seeds if no claim is about the arm.
        """
        places = [place for place, of_claim in enumerate(arms) if arm in of_claim]
        found = self.seeds[:, places].max(axis=1, initial=at_least)
        return np.asarray(found, dtype=np.int64)


def foresee(
    until: UntilDecided,
    decides: Sequence[Decides],
    values: Floats,
    *,
    tests: int | None = None,
    after: int = 0,
) -> Foreseen:
    """Return the last look at each claim in simulated studies; claims share the 5 % equally.

    Holm's procedure gives a claim more once others are decided, so real studies need no more seeds.

    Args:
        until: The looks.
        decides: For each claim, a function that returns whether an interval decides it.
        values: (studies, claims, largest number of seeds).
        tests: Number of claims that share the 5 %; None: the number of `decides`.
        after: Number of seeds at the last look taken, which decided none of these claims.
    """
    level = (1 - CONFIDENCE) / (tests or len(decides))
    sizes = until.sizes
    nominal = nominal_levels(sizes, until.spending, level)
    seeds = np.full(values.shape[:2], sizes[-1])
    is_decided = np.zeros(values.shape[:2], dtype=bool)
    for claim, decide in enumerate(decides):
        for study, drawn in enumerate(values[:, claim]):
            for n, own in zip(sizes, nominal, strict=True):
                if n <= after:
                    continue
                mean, spread = float(drawn[:n].mean()), float(drawn[:n].std(ddof=1))
                half = -float(special.stdtrit(n - 1, own / 2)) * spread / n**0.5
                is_decided[study, claim] = decide(mean - half, mean + half)
                chance = chance_at_the_end(until, decide, n, mean, spread, nominal[-1])
                if is_decided[study, claim] or chance < until.futility:
                    seeds[study, claim] = n
                    break
    return Foreseen(seeds=seeds, is_decided=is_decided)


def draw_effects(
    until: UntilDecided, effects: Sequence[float], studies: int = STUDIES, seed: int = 0
) -> Floats:
    """Return values of independent claims with the given means and standard deviation 1."""
    drawn = np.random.default_rng(seed).standard_normal((studies, len(effects), until.sizes[-1]))
    return np.asarray(drawn + np.asarray(effects)[:, None])


def draw_after(
    until: UntilDecided, pilot: Sequence[Mapping[int, float]], studies: int = STUDIES
) -> Floats:
    """Return simulated values of claims: the pilot's values, followed by new ones.

    Means and spread are drawn from their posterior under the flat prior; new seeds have the same
    correlation between claims as the pilot seeds.

    Args:
        until: The looks.
        pilot: Values by seed of each claim, all at the same two seeds or more.
        studies: Number of draws.
    """
    number = until.sizes[-1]
    known = np.array([[by_seed[seed] for seed in sorted(by_seed)] for by_seed in pilot])[:, :number]
    n = known.shape[1]
    mean, centred = known.mean(axis=1), known - known.mean(axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    scale = 1 / np.sqrt(rng.chisquare(n - 1, studies))
    middle = rng.standard_normal((studies, 1, n)) / n**0.5
    coming = rng.standard_normal((studies, number - n, n)) + middle
    drawn = mean[:, None] + scale[:, None, None] * np.einsum("ck,stk->sct", centred, coming)
    kept = np.broadcast_to(known, (studies, *known.shape))
    return np.concatenate([kept, drawn], axis=2)
