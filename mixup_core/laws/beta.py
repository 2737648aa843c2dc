"""Beta: a random weight, symmetric about 1/2."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from mixup_core.laws.law import Law
from mixup_core.tree.limits import Range

if TYPE_CHECKING:
    import numpy as np

    from mixup_core.arrays import Floats

MIN_ALPHA = 1e-6
"""The least alpha. Images are mixed with weights in float32, where a Beta law this narrow is a fair
coin: at 1e-6 only 6 of 100,000 weights are neither 0 nor 1, and the number is proportional to
alpha. NumPy draws in float64, where the same happens below 1e-102.
"""
MAX_ALPHA = 1e6
"""The largest alpha. The standard deviation of lam is then below 4e-4: use `midpoint` instead."""

Alpha = Annotated[
    float, Range(MIN_ALPHA, MAX_ALPHA, hint="for lam = 1/2 write midpoint, for lam = 1 write erm")
]
"""A shape parameter of a Beta law."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Beta(Law):
    """Random weight: lam ~ Beta(alpha, alpha), mean 1/2, variance 1 / (4 (2 alpha + 1)).

    Source: Zhang et al. 2018, arXiv:1710.09412, section 2.
    """

    tag: ClassVar = "beta"

    alpha: Alpha
    """Both shape parameters. At 1 the law is uniform on [0, 1]."""

    def quantiles(self, levels: "Floats") -> "Floats":
        """Return the quantiles of lam at the levels; same shape."""
        from scipy.special import betaincinv

        found: Floats = betaincinv(self.alpha, self.alpha, levels)
        return found

    def draw(self, shape: int | tuple[int, ...], rng: "np.random.Generator") -> "Floats":
        """Draw weights of the given shape."""
        return rng.beta(self.alpha, self.alpha, shape)

    @property
    def mean(self) -> float:
        """The mean of lam: 1/2."""
        return 0.5

    @property
    def variance(self) -> float:
        """The variance of lam: 1 / (4 (2 alpha + 1))."""
        return 1 / (4 * (2 * self.alpha + 1))

    @property
    def is_symmetric(self) -> bool:
        """True: lam and 1 - lam always have the same distribution."""
        return True

    @property
    def method(self) -> str | None:
        """`uniform` if alpha is 1, else None."""
        return "uniform" if self.alpha == 1 else None

    @property
    def caption(self) -> str:
        """Name of the law in captions."""
        return f"Beta({self.alpha:g}, {self.alpha:g})"

    def label_entropy(self, digamma: "Callable[[Floats], Floats] | None" = None) -> float:
        """Return E[-2 lam ln lam] = psi(2 alpha + 1) - psi(alpha + 1), in nats."""
        import numpy as np
        from scipy.special import psi

        upper, lower = (digamma or psi)(np.array([2 * self.alpha + 1, self.alpha + 1]))
        return float(upper - lower)

    def moments_within(self, low: float, high: float) -> tuple[float, float]:
        """Return P(low <= lam <= high) and E[lam; low <= lam <= high].

        With I_a the regularised incomplete beta function of shapes (a, a) between the bounds, they
        are I(a, a) and I(a + 1, a) / 2.
        """
        from scipy.special import betainc

        a = self.alpha
        mass = betainc(a, a, high) - betainc(a, a, low)
        return float(mass), float(betainc(a + 1, a, high) - betainc(a + 1, a, low)) / 2
