"""Mixing laws and schedules: how the weight lam of each epoch is distributed. Plain values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

MAX_ALPHA = 1e6
"""Beyond it a Beta law cannot be told from midpoint: its sd is below 4e-4."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Erm:
    """No mixing: lam = 1 always (empirical risk minimisation)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Midpoint:
    """Equal mixing: lam = 1/2 always, the limit of Beta(alpha, alpha) as alpha grows.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 2.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Beta:
    """Random weight: lam ~ Beta(alpha, alpha), mean 1/2, variance 1 / (4 (2 alpha + 1)).

    Source: Zhang et al. 2018, arXiv:1710.09412, section 2.
    """

    alpha: float
    """Both shape parameters, in (0, MAX_ALPHA]. At 1 the law is uniform on [0, 1]."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            ValueError: If alpha is out of range (NaN included).
        """
        alpha = self.alpha
        if not 0 < alpha <= MAX_ALPHA:
            raise ValueError(
                f"`0 < Beta.alpha <= 1e6` must hold, got ({alpha=}); "
                "for lam = 1/2 write midpoint, for lam = 1 write erm."
            )


Law = Erm | Midpoint | Beta


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """One law in every epoch."""

    law: Law

    def law_at(self, epoch: int) -> Law:
        """Return the law of a 0-based epoch."""
        del epoch
        return self.law


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """One law before the switch epoch, another from it on."""

    law: Law
    switch_epoch: int
    """First epoch (0-based) under `law_after`; 0 means `law` is never used."""
    law_after: Law

    def law_at(self, epoch: int) -> Law:
        """Return the law of a 0-based epoch."""
        return self.law if epoch < self.switch_epoch else self.law_after


Schedule = Constant | Switch


def spell_law(law: Law) -> str | dict[str, float]:
    """Return a law as study files write it: `erm`, `midpoint` or `{beta: alpha}`."""
    match law:
        case Erm():
            return "erm"
        case Midpoint():
            return "midpoint"
        case Beta(alpha=alpha):
            return {"beta": alpha}
        case _:
            assert_never(law)


def parse_law(spelling: object) -> Law:
    """Return the law a study file spells: the inverse of `spell_law`.

    Raises:
        ValueError: If the spelling is none of `erm`, `midpoint`, `{beta: alpha}`, or alpha is not
            a positive finite number.
    """
    match spelling:
        case Erm() | Midpoint() | Beta():
            return spelling
        case "erm":
            return Erm()
        case "midpoint":
            return Midpoint()
        case Mapping() if set(spelling) == {"beta"}:
            alpha = spelling["beta"]
            if isinstance(alpha, bool) or not isinstance(alpha, int | float):
                raise ValueError(f"`beta is a number` must hold, got (beta={alpha!r}).")
            return Beta(alpha=float(alpha))
        case _:
            raise ValueError(
                f"`law is erm, midpoint or {{beta: ALPHA}}` must hold, got ({spelling!r})."
            )
