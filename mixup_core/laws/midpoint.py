"""Midpoint: the law that mixes both images with equal weights."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.laws.law import ConstantLaw


@dataclass(frozen=True, kw_only=True, slots=True)
class Midpoint(ConstantLaw):
    """Equal mixing: lam = 1/2 always. Beta(alpha, alpha) tends to it as alpha grows.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 2.

    Example:
        In a study file: `mix.law: midpoint`.

        >>> from mixup_core.laws import Midpoint
        >>> Midpoint().mean, Midpoint().variance, round(Midpoint().label_entropy(), 4)  # ln 2
        (0.5, 0.0, 0.6931)
    """

    # Frozen: each `tag` in this file. After a change, stored results are not found or get another
    # meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "midpoint"
    constant: ClassVar = 0.5

    @property
    def caption(self) -> str:
        return "lam = 1/2"
