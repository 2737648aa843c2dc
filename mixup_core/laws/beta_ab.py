"""BetaAb: an asymmetric Beta law; one of the two images has the larger weight on average."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import Floats, np, special
from mixup_core.config.written_forms import Under
from mixup_core.laws.beta import Alpha, BetaShaped


@dataclass(frozen=True, kw_only=True, slots=True)
class BetaAb(BetaShaped):
    """Random weight lam ~ Beta(a, b), written `{beta: {a: 2, b: 5}}`; its mean is a / (a + b).

    Example:
        In a study file: `mix.law: {beta: {a: 3, b: 1}}`.

        >>> from mixup_core.laws import BetaAb
        >>> BetaAb(a=3.0, b=1.0).mean, BetaAb(a=3.0, b=1.0).variance
        (0.75, 0.0375)
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "beta-ab"
    short: ClassVar = Under("beta")

    a: Alpha
    """First shape parameter. A larger value gives the image itself more weight."""
    b: Alpha
    """Second shape parameter. A larger value gives the partner more weight."""

    def shapes(self) -> tuple[float, float]:
        return self.a, self.b

    @property
    def variance(self) -> float:
        total = self.a + self.b
        return self.a * self.b / (total**2 * (total + 1))

    def label_entropy(self, digamma: Callable[[Floats], Floats] | None = None) -> float:
        a, b = self.a, self.b
        both, first, second = (digamma or special.psi)(np.array([a + b + 1, a + 1, b + 1]))
        return float(both - (a * first + b * second) / (a + b))
