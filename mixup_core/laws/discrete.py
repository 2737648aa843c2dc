"""Discrete: a mixing weight that takes one of a few values."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from mixup_core.laws.law import Law
from mixup_core.rules import require
from mixup_core.tree.limits import Distinct, Range, Share
from mixup_core.tree.short_forms import Pairs

if TYPE_CHECKING:
    from mixup_core.arrays import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Discrete(Law):
    """Random weight with a few values, written as value: probability, `{0.5: 0.7, 1.0: 0.3}`."""

    tag: ClassVar = "discrete"
    short: ClassVar = Pairs("values", "shares")
    example: ClassVar = {"values": (0.5, 1.0), "shares": (0.75, 0.25)}

    values: Annotated[tuple[Share, ...], Distinct()]
    """Values that lam can take: at least two, increasing."""
    shares: tuple[Annotated[float, Range(0, 1, "()")], ...]
    """The probability of each value; they sum to 1."""

    def check(self) -> None:
        """Check that values and probabilities fit together.

        Raises:
            RuleError: If there are fewer than two values, they do not increase, their number
                differs from that of the probabilities, or the probabilities do not sum to 1.
        """
        require(len(self.values) >= 2, "a discrete law needs two values or more", self, "values")
        grows = list(self.values) == sorted(self.values)
        require(grows, "values must increase", self, "values")
        fits = len(self.values) == len(self.shares)
        require(fits, "each value needs a share", self, "values", "shares")
        is_whole = abs(math.fsum(self.shares) - 1) < 1e-9
        require(is_whole, "shares must add up to 1", self, "shares")

    def quantiles(self, levels: "Floats") -> "Floats":
        """Return the quantiles of lam at the levels; same shape."""
        import numpy as np

        steps = np.cumsum(self.shares)[:-1]
        return np.asarray(self.values)[np.searchsorted(steps, levels, side="left")]

    def has_nodes(self, count: int) -> bool:
        """Return whether `count` equally weighted nodes represent the law exactly.

        They do if each probability is a multiple of 1 / count.
        """
        return all(abs(share * count - round(share * count)) < 1e-9 for share in self.shares)

    @property
    def is_symmetric(self) -> bool:
        """True if lam and 1 - lam have the same distribution."""
        ends = zip(self.values, reversed(self.values), strict=True)
        shares = zip(self.shares, reversed(self.shares), strict=True)
        is_mirrored = all(abs(first + last - 1) < 1e-9 for first, last in ends)
        return is_mirrored and all(abs(first - last) < 1e-9 for first, last in shares)

    @property
    def mean(self) -> float:
        """The mean of lam."""
        return math.fsum(v * share for v, share in zip(self.values, self.shares, strict=True))

    @property
    def variance(self) -> float:
        """The variance of lam."""
        pairs = zip(self.values, self.shares, strict=True)
        return math.fsum((v - self.mean) ** 2 * share for v, share in pairs)

    @property
    def caption(self) -> str:
        """Name of the law in captions."""
        pairs = zip(self.values, self.shares, strict=True)
        return "lam = " + ", ".join(f"{v:g} with probability {share:g}" for v, share in pairs)

    def label_entropy(self, digamma: object = None) -> float:
        """Return the mean entropy of a mixed label, in nats; exact."""
        del digamma
        from scipy.special import entr

        pairs = zip(self.values, self.shares, strict=True)
        return math.fsum(share * float(entr(v) + entr(1 - v)) for v, share in pairs)

    def moments_within(self, low: float, high: float) -> tuple[float, float]:
        """Return P(low <= lam <= high) and E[lam 1(low <= lam <= high)]; exact."""
        pairs = zip(self.values, self.shares, strict=True)
        inside = [(v, share) for v, share in pairs if low <= v <= high]
        return math.fsum(share for _, share in inside), math.fsum(v * share for v, share in inside)
