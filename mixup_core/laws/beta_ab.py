"""BetaAb: an asymmetric Beta law; one of the two images has the larger weight on average."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mixup_core.config.short_forms import Under
from mixup_core.laws.beta import Alpha
from mixup_core.laws.law import Law

if TYPE_CHECKING:
    import numpy as np

    from mixup_core.arrays import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class BetaAb(Law):
    """Random weight lam ~ Beta(a, b), written `{beta: {a: 2, b: 5}}`; its mean is a / (a + b).

    Example:
        In a study file: `mix.law: {beta: {a: 3, b: 1}}`.

        >>> from mixup_core.laws import BetaAb
        >>> BetaAb(a=3.0, b=1.0).mean, BetaAb(a=3.0, b=1.0).variance
        (0.75, 0.0375)
    """

    tag: ClassVar = "beta-ab"
    short: ClassVar = Under("beta")

    a: Alpha
    """First shape parameter. A larger value gives the image itself more weight."""
    b: Alpha
    """Second shape parameter. A larger value gives the partner more weight."""

    def quantiles(self, levels: "Floats") -> "Floats":
        """Return the quantiles of lam at the probabilities `levels`, in the same shape."""
        from scipy.special import betaincinv

        found: Floats = betaincinv(self.a, self.b, levels)
        return found

    def draw(self, shape: int | tuple[int, ...], rng: "np.random.Generator") -> "Floats":
        """Draw an array of mixing weights lam of the given shape."""
        return rng.beta(self.a, self.b, shape)

    @property
    def mean(self) -> float:
        """The mean of the mixing weight lam: a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> float:
        """The variance of the mixing weight lam: a b / ((a + b)^2 (a + b + 1))."""
        total = self.a + self.b
        return self.a * self.b / (total**2 * (total + 1))

    @property
    def is_symmetric(self) -> bool:
        """True if a equals b, so that lam and 1 - lam have the same distribution."""
        return self.a == self.b

    @property
    def caption(self) -> str:
        """Name of this law in captions, such as `Beta(2, 5)`."""
        return f"Beta({self.a:g}, {self.b:g})"

    def label_entropy(self, digamma: "Callable[[Floats], Floats] | None" = None) -> float:
        """Return the mean entropy of a mixed label of two different classes, in nats.

            psi(a + b + 1) - (a psi(a + 1) + b psi(b + 1)) / (a + b)

        psi is the digamma function.
        """
        import numpy as np
        from scipy.special import psi

        a, b = self.a, self.b
        both, first, second = (digamma or psi)(np.array([a + b + 1, a + 1, b + 1]))
        return float(both - (a * first + b * second) / (a + b))

    def moments_within(self, low: float, high: float) -> tuple[float, float]:
        """Return P(low <= lam <= high) and E[lam 1(low <= lam <= high)].

        1(...) is 1 if the condition holds, else 0. With I(a, b) the probability of [low, high]
        under a Beta(a, b) law, the two values are I(a, b) and I(a + 1, b) a / (a + b).
        """
        from scipy.special import betainc

        a, b = self.a, self.b
        mass = betainc(a, b, high) - betainc(a, b, low)
        return float(mass), self.mean * float(betainc(a + 1, b, high) - betainc(a + 1, b, low))
