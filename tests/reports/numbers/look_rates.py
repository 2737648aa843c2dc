"""Seeds and error rates of planned looks, by simulated studies of one claim.

    python -m tests.reports.numbers.look_rates 20000

prints the table of docs/explanation/statistics.md.
"""

import sys
from dataclasses import dataclass

import numpy as np
from scipy import special

from reports.numbers.power import draw_effects, foresee
from reports.numbers.spelling import markdown_grid
from reports.numbers.summary import CONFIDENCE
from sweeps.study.bounds import nominal_levels
from sweeps.study.claims import UntilDecided

UNTIL = UntilDecided(at_most=20, until="decided")
CASES = (
    (0.0, None), (0.0, 0.75), (0.0, 1.0), (0.3, None), (0.5, None), (0.75, 0.75), (1.0, None),
    (1.5, None), (2.0, None),
)  # fmt: skip
"""True difference and margin of equivalence, in sd over seeds."""


HEADER = (
    "difference, sd", "margin, sd", "decided", "wrong", "interval holds it", "bias, sd",
    "mean seeds", "of 20", "fixed design as powerful", "ratio",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class LookRates:
    """Errors, seeds and decisions in the simulated studies of one case."""

    effect: float
    margin: float | None
    decided: float
    """Fraction of studies whose claim was decided."""
    wrong: float
    """Fraction of studies whose decision contradicts the true difference."""
    covered: float
    """Fraction of studies whose last interval contains the true difference."""
    bias: float
    """Mean of the estimate at the last look, minus the true difference, in sd."""
    seeds: float
    fixed: float | None
    """Number of seeds of a fixed design that decides as often; None if all studies, or only wrong
    ones, are decided.
    """


def look_rates(effect: float, margin: float | None, studies: int, seed: int = 1) -> LookRates:
    """Simulate studies with one claim, that two arms differ.

    Args:
        effect: True difference, in sd over seeds.
        margin: Margin of equivalence, in sd; None: no equivalence is declared.
        studies: Number of studies.
        seed: Seed of the random numbers.
    """

    def is_decided(low: float, high: float) -> bool:
        is_equal = margin is not None and -margin < low and high < margin
        return low > 0 or high < 0 or is_equal

    drawn = draw_effects(UNTIL, [effect], studies, seed)
    found = foresee(UNTIL, [is_decided], drawn)
    levels = nominal_levels(UNTIL.sizes, UNTIL.spending, 1 - CONFIDENCE)
    nominal = dict(zip(UNTIL.sizes, levels, strict=True))
    ends = found.seeds[:, 0]
    means = np.array([row[:n].mean() for row, n in zip(drawn[:, 0], ends, strict=True)])
    halves = np.array([
        -special.stdtrit(n - 1, nominal[n] / 2) * row[:n].std(ddof=1) / n**0.5
        for row, n in zip(drawn[:, 0], ends, strict=True)
    ])  # fmt: skip
    low, high = means - halves, means + halves
    is_wrong = (low > max(effect, 0)) | (high < min(effect, 0))
    if effect == 0:
        is_wrong = (low > 0) | (high < 0)
    if margin is not None and abs(effect) >= margin:
        is_wrong |= (-margin < low) & (high < margin)
    decided = float(found.is_decided.mean())
    return LookRates(
        effect=effect,
        margin=margin,
        decided=decided,
        wrong=float((is_wrong & found.is_decided[:, 0]).mean()),
        covered=float(((low <= effect) & (effect <= high)).mean()),
        bias=float(means.mean() - effect),
        seeds=float(ends.mean()),
        fixed=_fixed(effect, decided),
    )


def _fixed(effect: float, power: float) -> float | None:
    """Return the number of seeds of a fixed design with a given power; interpolated."""
    if effect == 0 or power == 1:
        return None
    before = 0.0
    for n in range(2, 1_000):
        critical = special.stdtrit(n - 1, (1 + CONFIDENCE) / 2)
        own = 1 - float(special.nctdtr(n - 1, effect * n**0.5, critical))
        if own >= power:
            return n - (own - power) / (own - before) if own > before else float(n)
        before = own
    raise AssertionError("more than 1,000 seeds")


def table(studies: int) -> str:
    """Return the table of the documentation."""
    lines = [list(HEADER)]
    for effect, margin in CASES:
        found = look_rates(effect, margin, studies)
        lines.append([
            f"{effect:g}",
            "none" if margin is None else f"{margin:g}",
            f"{100 * found.decided:.1f} %",
            f"{100 * found.wrong:.2f} %",
            f"{100 * found.covered:.1f} %",
            f"{found.bias:+.2f}",
            f"{found.seeds:.1f}",
            f"{found.seeds / UNTIL.sizes[-1]:.2f}",
            *(("—", "—") if found.fixed is None else
              (f"{found.fixed:.1f}", f"{found.seeds / found.fixed:.2f}")),
        ])  # fmt: skip
    return markdown_grid(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table(int(sys.argv[1]))}\n")
