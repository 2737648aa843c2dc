"""Discrete: a random mixing weight with a few possible values."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from mixup_core.arrays import Floats, np, special
from mixup_core.config.limits import Distinct, Range, Share
from mixup_core.config.written_forms import Pairs
from mixup_core.laws.law import Law
from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class Discrete(Law):
    """Random weight with a few possible values: 1/2 with probability 0.75 or 1 with 0.25, say.

    A study file gives each value with its probability.

    Example:
        In a study file: `mix.law: {0.5: 0.75, 1.0: 0.25}`.

        >>> from mixup_core.laws import Discrete
        >>> law = Discrete(values=(0.5, 1.0), shares=(0.75, 0.25))
        >>> law.mean, law.variance
        (0.625, 0.046875)
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "discrete"
    short: ClassVar = Pairs("values", "shares")
    example: ClassVar = {"values": (0.5, 1.0), "shares": (0.75, 0.25)}

    values: Annotated[tuple[Share, ...], Distinct()]
    """The possible values of lam: at least two, increasing."""
    shares: tuple[Annotated[float, Range(0, 1, "()")], ...]
    """The probability of each value; the probabilities sum to 1."""

    def check(self) -> None:
        require(len(self.values) >= 2, "a discrete law needs at least two values", self, "values")
        grows = list(self.values) == sorted(self.values)
        require(grows, "values of a discrete law must increase", self, "values")
        fits = len(self.values) == len(self.shares)
        rule = "values and shares must have equal lengths: each value needs one share"
        require(fits, rule, self, "values", "shares")
        is_whole = abs(math.fsum(self.shares) - 1) < 1e-9
        require(is_whole, "shares (probabilities of values) must add up to 1", self, "shares")

    def quantiles(self, levels: Floats) -> Floats:
        steps = np.cumsum(self.shares)[:-1]
        return np.asarray(self.values)[np.searchsorted(steps, levels, side="left")]

    def has_nodes(self, count: int) -> bool:
        return all(abs(share * count - round(share * count)) < 1e-9 for share in self.shares)

    @property
    def is_symmetric(self) -> bool:
        ends = zip(self.values, reversed(self.values), strict=True)
        shares = zip(self.shares, reversed(self.shares), strict=True)
        is_mirrored = all(abs(first + last - 1) < 1e-9 for first, last in ends)
        return is_mirrored and all(abs(first - last) < 1e-9 for first, last in shares)

    @property
    def _pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.values, self.shares, strict=True))

    @property
    def mean(self) -> float:
        return math.fsum(v * share for v, share in self._pairs)

    @property
    def variance(self) -> float:
        return math.fsum((v - self.mean) ** 2 * share for v, share in self._pairs)

    @property
    def caption(self) -> str:
        return "lam = " + ", ".join(f"{v:g} with probability {p:g}" for v, p in self._pairs)

    def label_entropy(self, digamma: object = None) -> float:
        del digamma
        entropies = ((p, float(special.entr(v) + special.entr(1 - v))) for v, p in self._pairs)
        return math.fsum(share * entropy for share, entropy in entropies)

    def moments_within(self, low: float, high: float) -> tuple[float, float]:
        inside = [(v, share) for v, share in self._pairs if low <= v <= high]
        return math.fsum(share for _, share in inside), math.fsum(v * share for v, share in inside)
