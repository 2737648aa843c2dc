"""Mixing laws: how the weight lam of an image is distributed. Plain values, one choice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, assert_never

from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Range

MIN_ALPHA = 1e-6
"""Below it a Beta law cannot be told from a fair coin on {0, 1}: of weights in float32, with which
images are mixed, at it 6 in 100,000 are neither 0 nor 1, and in proportion to alpha; the others
underflow. NumPy, which draws in float64, has no others below 1e-102 either."""
MAX_ALPHA = 1e6
"""Beyond it a Beta law cannot be told from midpoint: its sd is below 4e-4."""

Alpha = Annotated[float, Range(MIN_ALPHA, MAX_ALPHA)]
"""Both shape parameters of a Beta law."""

_LIMITS_OF_LAMBDA = "for lam = 1/2 write midpoint, for lam = 1 write erm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Erm:
    """No mixing: lam = 1 always (empirical risk minimisation)."""

    tag: ClassVar = "erm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Midpoint:
    """Equal mixing: lam = 1/2 always, the limit of Beta(alpha, alpha) as alpha grows.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 2.
    """

    tag: ClassVar = "midpoint"


@dataclass(frozen=True, kw_only=True, slots=True)
class Beta(Checked):
    """Random weight: lam ~ Beta(alpha, alpha), mean 1/2, variance 1 / (4 (2 alpha + 1)).

    Source: Zhang et al. 2018, arXiv:1710.09412, section 2.
    """

    tag: ClassVar = "beta"

    alpha: Annotated[float, Range(MIN_ALPHA, MAX_ALPHA, hint=_LIMITS_OF_LAMBDA)]
    """Both shape parameters. At 1 the law is uniform on [0, 1]."""


Law = Erm | Midpoint | Beta

PLAIN_METHODS: Mapping[Law | None, str] = {
    Erm(): "erm",
    Midpoint(): "midpoint",
    Beta(alpha=1.0): "uniform",
}
"""The laws that have a name, and a colour, of their own."""


def lambda_quantiles(law: Law, levels: Sequence[float]) -> tuple[float, ...]:
    """Return the quantiles of lam, in [0, 1].

    Args:
        law: The law of lam.
        levels: Each in (0, 1).
    """
    match law:
        case Erm():
            return (1.0,) * len(levels)
        case Midpoint():
            return (0.5,) * len(levels)
        case Beta(alpha=alpha):
            from scipy.special import betaincinv

            return tuple(float(betaincinv(alpha, alpha, level)) for level in levels)
        case _:
            assert_never(law)
