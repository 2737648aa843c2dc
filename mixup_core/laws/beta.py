"""Beta: a random mixing weight, symmetric about 1/2."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from mixup_core.arrays import Floats, np, special
from mixup_core.config.limits import Range
from mixup_core.laws.law import Law

MIN_ALPHA = 1e-6
"""Smallest allowed alpha; at this value, only 6 of 100,000 draws are neither 0 nor 1 in float32."""
MAX_ALPHA = 1e6
"""Largest allowed alpha; at this value, the standard deviation of lam is below 4e-4."""

Alpha = Annotated[
    float, Range(MIN_ALPHA, MAX_ALPHA, hint="for lam = 1/2 write midpoint, for lam = 1 write erm")
]
"""Type of a shape parameter of a Beta law, limited to [MIN_ALPHA, MAX_ALPHA]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BetaShaped(Law):
    """Base class of Beta laws; `shapes` returns both shape parameters."""

    @abstractmethod
    def shapes(self) -> tuple[float, float]:
        """Return the shape parameters a and b; the mean of lam is a / (a + b)."""

    def quantiles(self, levels: Floats) -> Floats:
        found: Floats = special.betaincinv(*self.shapes(), levels)
        return found

    def draw(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/golden/test_draws.py fails.
        return rng.beta(*self.shapes(), shape)

    @property
    def mean(self) -> float:
        a, b = self.shapes()
        return a / (a + b)

    @property
    def is_symmetric(self) -> bool:
        a, b = self.shapes()
        return a == b

    @property
    def caption(self) -> str:
        a, b = self.shapes()
        return f"Beta({a:g}, {b:g})"

    def moments_within(self, low: float, high: float) -> tuple[float, float]:
        a, b = self.shapes()
        mass, part = (
            float(special.betainc(first, b, high) - special.betainc(first, b, low))
            for first in (a, a + 1)
        )
        return mass, self.mean * part


@dataclass(frozen=True, kw_only=True, slots=True)
class Beta(BetaShaped):
    """Random weight: lam ~ Beta(alpha, alpha), mean 1/2, variance 1 / (4 (2 alpha + 1)).

    Source: Zhang et al. 2018, arXiv:1710.09412, section 2.

    Example:
        In a study file: `mix.law: {beta: 0.5}`.

        >>> from mixup_core.laws import Beta
        >>> Beta(alpha=0.5).mean, Beta(alpha=0.5).variance
        (0.5, 0.125)
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "beta"

    alpha: Alpha
    """Both shape parameters. At 1 the law is uniform on [0, 1]."""

    def shapes(self) -> tuple[float, float]:
        return self.alpha, self.alpha

    @property
    def variance(self) -> float:
        return 1 / (4 * (2 * self.alpha + 1))

    @property
    def method(self) -> str | None:
        return "uniform" if self.alpha == 1 else None

    def label_entropy(self, digamma: Callable[[Floats], Floats] | None = None) -> float:
        upper, lower = (digamma or special.psi)(np.array([2 * self.alpha + 1, self.alpha + 1]))
        return float(upper - lower)
