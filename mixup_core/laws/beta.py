"""Beta: a random mixing weight, symmetric about 1/2."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from mixup_core.arrays import Floats, np, special
from mixup_core.config.limits import Range
from mixup_core.laws.law import Law

MIN_ALPHA = 1e-6
"""Smallest allowed alpha. Below it, practically every weight is 0 or 1 in float32: at 1e-6, only 6
of 100,000 draws are neither, and this share is proportional to alpha. (In float64, the type that
NumPy draws, practically every weight is 0 or 1 only below 1e-102.)
"""
MAX_ALPHA = 1e6
"""Largest allowed alpha. At this value the standard deviation of lam is below 4e-4, so `midpoint`
is practically the same law.
"""

Alpha = Annotated[
    float, Range(MIN_ALPHA, MAX_ALPHA, hint="for lam = 1/2 write midpoint, for lam = 1 write erm")
]
"""Type of a shape parameter of a Beta law, limited to [MIN_ALPHA, MAX_ALPHA]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Beta(Law):
    """Random weight: lam ~ Beta(alpha, alpha), mean 1/2, variance 1 / (4 (2 alpha + 1)).

    Source: Zhang et al. 2018, arXiv:1710.09412, section 2.

    Example:
        In a study file: `mix.law: {beta: 0.5}`.

        >>> from mixup_core.laws import Beta
        >>> Beta(alpha=0.5).mean, Beta(alpha=0.5).variance
        (0.5, 0.125)
    """

    tag: ClassVar = "beta"

    alpha: Alpha
    """Both shape parameters. At 1 the law is uniform on [0, 1]."""

    def quantiles(self, levels: "Floats") -> "Floats":
        found: Floats = special.betaincinv(self.alpha, self.alpha, levels)
        return found

    def draw(self, shape: int | tuple[int, ...], rng: "np.random.Generator") -> "Floats":
        return rng.beta(self.alpha, self.alpha, shape)

    @property
    def mean(self) -> float:
        return 0.5

    @property
    def variance(self) -> float:
        return 1 / (4 * (2 * self.alpha + 1))

    @property
    def is_symmetric(self) -> bool:
        return True

    @property
    def method(self) -> str | None:
        return "uniform" if self.alpha == 1 else None

    @property
    def caption(self) -> str:
        return f"Beta({self.alpha:g}, {self.alpha:g})"

    def label_entropy(self, digamma: "Callable[[Floats], Floats] | None" = None) -> float:
        upper, lower = (digamma or special.psi)(np.array([2 * self.alpha + 1, self.alpha + 1]))
        return float(upper - lower)

    def moments_within(self, low: float, high: float) -> tuple[float, float]:
        a = self.alpha
        mass = special.betainc(a, a, high) - special.betainc(a, a, low)
        return float(mass), float(
            special.betainc(a + 1, a, high) - special.betainc(a + 1, a, low)
        ) / 2
