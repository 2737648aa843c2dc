"""Mixing laws: how the weight lam of an image is distributed. Plain values, one choice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mixup_core.rules import RuleError

MAX_ALPHA = 1e6
"""Beyond it a Beta law cannot be told from midpoint: its sd is below 4e-4."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Erm:
    """No mixing: lam = 1 always (empirical risk minimisation)."""

    tag: ClassVar = "erm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Midpoint:
    """Equal mixing: lam = 1/2 always, the limit of Beta(alpha, alpha) as alpha grows.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 2.
    """

    tag: ClassVar = "midpoint"


@dataclass(frozen=True, kw_only=True, slots=True)
class Beta:
    """Random weight: lam ~ Beta(alpha, alpha), mean 1/2, variance 1 / (4 (2 alpha + 1)).

    Source: Zhang et al. 2018, arXiv:1710.09412, section 2.
    """

    tag: ClassVar = "beta"

    alpha: float
    """Both shape parameters, in (0, MAX_ALPHA]. At 1 the law is uniform on [0, 1]."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If alpha is out of range (NaN included).
        """
        if not 0 < self.alpha <= MAX_ALPHA:
            raise RuleError(
                "0 < Beta.alpha <= 1e6",
                {"alpha": self.alpha},
                hint="for lam = 1/2 write midpoint, for lam = 1 write erm",
            )


Law = Erm | Midpoint | Beta

PLAIN_METHODS: Mapping[Law | None, str] = {
    Erm(): "erm",
    Midpoint(): "midpoint",
    Beta(alpha=1.0): "uniform",
}
"""The laws that have a name, and a colour, of their own."""
