"""Foresight: how many seeds planned looks are likely to take, by simulation before they are run."""

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
"""Simulated studies; the standard error of a mean number of seeds is at most 0.5 of 20."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreseen:
    """The ends of claims in simulated studies."""

    seeds: NDArray[np.int64]
    """(studies, claims): seeds at the look after which a claim gets no more."""
    is_decided: NDArray[np.bool_]
    """(studies, claims): whether that look decided the claim."""

    def reached(self, arms: Sequence[frozenset[str]], arm: str, at_least: int) -> NDArray[np.int64]:
        """Return the seeds that an arm gets in each study.

        Args:
            arms: Those of each claim.
            arm: The arm.
            at_least: Its seeds if no claim is about it.
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
    """Return where the looks at some claims end; each has a like part of the 5 %.

    Holm's procedure gives a claim more once others are decided, so real studies need no more seeds.

    Args:
        until: The looks.
        decides: One per claim: whether an interval with these ends decides it.
        values: (studies, claims, largest number of seeds).
        tests: Number of claims that share the 5 %; None: these alone.
        after: Seeds at the last look that was taken; it decided none of these claims.
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
    """Return values of independent claims whose mean differs from 0 by so many sd."""
    drawn = np.random.default_rng(seed).standard_normal((studies, len(effects), until.sizes[-1]))
    return np.asarray(drawn + np.asarray(effects)[:, None])


def draw_after(
    until: UntilDecided, pilot: Sequence[Mapping[int, float]], studies: int = STUDIES
) -> Floats:
    """Draw possible further values of claims after pilot seeds; the pilot values are kept.

    Means and spread are drawn from their posterior under the flat prior, and seeds of one draw are
    alike in all claims as the pilot seeds are.

    Args:
        until: The looks.
        pilot: Seed to value of each claim, all at the same two seeds or more.
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
