"""Truncated: a symmetric Beta law restricted to an interval."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import Floats, special
from mixup_core.config.limits import Share
from mixup_core.laws.beta import Alpha
from mixup_core.laws.law import Law
from mixup_core.rules import require

_LEAST_MASS = 1e-6
"""Smallest allowed probability of the interval; below, the quantiles are inaccurate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Truncated(Law):
    """Random weight: lam ~ Beta(alpha, alpha), given that low <= lam <= high.

    With low = 1/2 the image itself always has the larger weight.

    Example:
        In a study file: `mix.law: {truncated: {alpha: 1, low: 0.5}}`.

        >>> from mixup_core.laws import Truncated
        >>> law = Truncated(alpha=1.0, low=0.5)  # uniform on [1/2, 1]
        >>> round(law.mean, 4), round(law.variance, 4)  # 3/4 and 1/48
        (0.75, 0.0208)
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "truncated"

    alpha: Alpha
    """Both shape parameters of the Beta law before truncation."""
    low: Share = 0.0
    """Lower end of the interval; below `high`."""
    high: Share = 1.0
    """Upper end of the interval."""

    def check(self) -> None:
        require(self.low < self.high, "low < high", self, "low", "high")
        first, last = self._levels()
        rule = "P(low <= lam <= high) >= 1e-6"
        hint = "the law almost never lies in this interval; widen it"
        require(last - first >= _LEAST_MASS, rule, self, "alpha", "low", "high", hint=hint)

    def quantiles(self, levels: Floats) -> Floats:
        first, last = self._levels()
        found: Floats = special.betaincinv(self.alpha, self.alpha, first + (last - first) * levels)
        return found.clip(self.low, self.high)

    @property
    def is_symmetric(self) -> bool:
        return self.low == 1 - self.high

    @property
    def caption(self) -> str:
        return f"Beta({self.alpha:g}, {self.alpha:g}) within [{self.low:g}, {self.high:g}]"

    def moments_within(self, low: float, high: float) -> tuple[float, float]:
        a = self.alpha
        low, high = max(low, self.low), min(high, self.high)
        if low > high:
            return 0.0, 0.0
        first, last = self._levels()
        mass = special.betainc(a, a, high) - special.betainc(a, a, low)
        part = (special.betainc(a + 1, a, high) - special.betainc(a + 1, a, low)) / 2
        return float(mass / (last - first)), float(part / (last - first))

    def _levels(self) -> tuple[float, float]:
        """Return P(x <= low) and P(x <= high) for x ~ Beta(alpha, alpha), before truncation."""
        return tuple(
            float(special.betainc(self.alpha, self.alpha, end)) for end in (self.low, self.high)
        )  # type: ignore[return-value]
