"""Discrete: a random mixing weight with a few possible values."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from mixup_core.config.limits import Distinct, Range, Share
from mixup_core.config.short_forms import Pairs
from mixup_core.laws.law import Law
from mixup_core.rules import require

if TYPE_CHECKING:
    from mixup_core.arrays import Floats


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

    tag: ClassVar = "discrete"
    short: ClassVar = Pairs("values", "shares")
    example: ClassVar = {"values": (0.5, 1.0), "shares": (0.75, 0.25)}

    values: Annotated[tuple[Share, ...], Distinct()]
    """The possible values of lam: at least two, increasing."""
    shares: tuple[Annotated[float, Range(0, 1, "()")], ...]
    """The probability of each value; the probabilities sum to 1."""

    def check(self) -> None:
        """Check that the values of lam and their probabilities fit together.

        Raises:
            RuleError: If there are fewer than two values, the values do not increase, `values` and
                `shares` have different lengths, or the shares do not sum to 1.
        """
        require(len(self.values) >= 2, "a discrete law needs at least two values", self, "values")
        grows = list(self.values) == sorted(self.values)
        require(grows, "values of a discrete law must increase", self, "values")
        fits = len(self.values) == len(self.shares)
        rule = "values and shares must have equal lengths: each value needs one share"
        require(fits, rule, self, "values", "shares")
        is_whole = abs(math.fsum(self.shares) - 1) < 1e-9
        require(is_whole, "shares (probabilities of values) must add up to 1", self, "shares")

    def quantiles(self, levels: "Floats") -> "Floats":
        """Return the quantiles of lam at the probabilities `levels`, in the same shape."""
        import numpy as np

        steps = np.cumsum(self.shares)[:-1]
        return np.asarray(self.values)[np.searchsorted(steps, levels, side="left")]

    def has_nodes(self, count: int) -> bool:
        """Return whether `count` equally weighted values of lam (from `nodes`) give this law.

        They do if the probability of each value is a multiple of 1 / count.
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
        """The mean of the mixing weight lam."""
        return math.fsum(v * share for v, share in zip(self.values, self.shares, strict=True))

    @property
    def variance(self) -> float:
        """The variance of the mixing weight lam."""
        pairs = zip(self.values, self.shares, strict=True)
        return math.fsum((v - self.mean) ** 2 * share for v, share in pairs)

    @property
    def caption(self) -> str:
        """Name of this law in captions: the values of lam with their probabilities."""
        pairs = zip(self.values, self.shares, strict=True)
        return "lam = " + ", ".join(f"{v:g} with probability {share:g}" for v, share in pairs)

    def label_entropy(self, digamma: object = None) -> float:
        """Return the exact mean entropy of a mixed label of two different classes, in nats."""
        del digamma
        from scipy.special import entr

        pairs = zip(self.values, self.shares, strict=True)
        return math.fsum(share * float(entr(v) + entr(1 - v)) for v, share in pairs)

    def moments_within(self, low: float, high: float) -> tuple[float, float]:
        """Return the exact values of P(low <= lam <= high) and E[lam 1(low <= lam <= high)].

        1(...) is 1 if the condition holds, else 0.
        """
        pairs = zip(self.values, self.shares, strict=True)
        inside = [(v, share) for v, share in pairs if low <= v <= high]
        return math.fsum(share for _, share in inside), math.fsum(v * share for v, share in inside)
