"""Law: the base class of distributions of the mixing weight lam; plugins may subclass it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from mixup_core.arrays import Floats, np, special
from mixup_core.config.catalogue import Catalogue
from mixup_core.config.checked import Checked
from mixup_core.contracts import is_of_plugin, require_quantiles
from mixup_core.rules import require

_NODES = 4096
"""Number of quantiles whose mean approximates an expectation; the label entropy of Beta(a, a) is
then within 5e-6 of its closed form for a in [0.05, 8].
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Law(Checked, ABC):
    """Base class of laws: distributions of an image's mixing weight lam, on [0, 1].

    The partner of the image has the weight 1 - lam. A subclass must define `quantiles`; all other
    methods compute their results from the quantiles, so override those that have a closed form. The
    file of a law is imported whenever a study file is read, so import NumPy and SciPy inside the
    methods.

    Example:
        >>> from dataclasses import dataclass
        >>> from mixsweep.plugins import Law, Share
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class AroundHalf(Law):
        ...     tag = "around-half"
        ...     width: Share = 0.2
        ...     def quantiles(self, levels):
        ...         return 0.5 + self.width * (levels - 0.5)
        >>> round(AroundHalf(width=0.6).variance, 4)  # width^2 / 12
        0.03
    """

    catalogue: ClassVar[Catalogue["Law"]] = Catalogue("law", meant={"mixup": "beta"})

    tag: ClassVar[str]
    """Name of the law in study files."""
    constant: ClassVar[float | None] = None
    """The value of lam if it is constant, else None."""

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if is_of_plugin(self):
            require_quantiles(self)

    @abstractmethod
    def quantiles(self, levels: Floats) -> Floats:
        """Return quantiles of the mixing weight lam, in [0, 1].

        Args:
            levels: Probabilities in [0, 1], of any shape; the result has the same shape.

        Example:
            >>> import numpy as np
            >>> from mixup_core.laws import Discrete
            >>> law = Discrete(values=(0.5, 1.0), shares=(0.75, 0.25))
            >>> law.quantiles(np.array([0.1, 0.7, 0.8]))
            array([0.5, 0.5, 1. ])
        """

    def draw(self, shape: int | tuple[int, ...], rng: "np.random.Generator") -> Floats:
        """Draw an array of independent mixing weights lam; a constant law does not use `rng`.

        Args:
            shape: Shape of the result.
            rng: Random generator.

        Returns:
            Weights in [0, 1], float64.

        Example:
            >>> from mixsweep.plugins import stream
            >>> from mixup_core.laws import Midpoint
            >>> Midpoint().draw((2, 3), stream(0, "mixing"))
            array([[0.5, 0.5, 0.5],
                   [0.5, 0.5, 0.5]])
        """
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/golden/test_draws.py fails.
        return self.quantiles(rng.random(shape))

    def nodes(self, count: int) -> Floats:
        """Return values of lam whose plain mean replaces the mean over the law: (count,).

        The values are the quantiles at (i + 1/2) / count (midpoint rule). The mean of f over them
        approximates E[f(lam)] with an error of O(1 / count^2), if f is smooth in the quantile
        level. For a constant law, the shape is (1,).

        Args:
            count: Number of values, at least 1.

        Example:
            >>> from mixup_core.laws import Beta
            >>> Beta(alpha=1.0).nodes(4)
            array([0.125, 0.375, 0.625, 0.875])
        """
        if self.constant is not None:
            return np.array([self.constant])
        places: Any = (np.arange(count) + 0.5) / count
        return self.quantiles(places)

    def nodes_of_pairs(self, count: int) -> Floats:
        """Return values of lam that represent the law in a mean over all ordered pairs of examples.

        The method `nodes` returns `count` equally weighted values of lam. Mixing a pair with
        weight 1 - lam equals mixing the reversed pair with lam, so for a symmetric law and an even
        count the larger half of the values is enough: (count / 2,). Otherwise all values are
        needed. For a constant law, the shape is (1,).

        Args:
            count: Number of values that `nodes` returns, at least 1.

        Example:
            >>> from mixup_core.laws import Beta
            >>> Beta(alpha=1.0).nodes_of_pairs(4)
            array([0.625, 0.875])
        """
        nodes = self.nodes(count)
        is_halved = self.is_symmetric and len(nodes) % 2 == 0
        return nodes[len(nodes) // 2 :] if is_halved else nodes

    @property
    def mean(self) -> float:
        """The mean of the mixing weight lam, in [0, 1].

        Example:
            >>> from mixup_core.laws import BetaAb
            >>> BetaAb(a=3.0, b=1.0).mean
            0.75
        """
        return float(self.nodes(_NODES).mean())

    @property
    def variance(self) -> float:
        """The variance of the mixing weight lam, in [0, 1/4].

        Example:
            >>> from mixup_core.laws import Beta
            >>> round(Beta(alpha=1.0).variance, 4)  # uniform on [0, 1]: 1/12
            0.0833
        """
        return float(self.nodes(_NODES).var())

    @property
    def is_symmetric(self) -> bool:
        """True if lam and 1 - lam have the same distribution.

        Example:
            >>> from mixup_core.laws import Beta, Truncated
            >>> Beta(alpha=0.2).is_symmetric, Truncated(alpha=0.2, low=0.5).is_symmetric
            (True, False)
        """
        nodes = self.nodes(64)
        return bool((abs(nodes + nodes[::-1] - 1) < 1e-9).all())

    @property
    def mixes(self) -> bool:
        """True unless the mixing weight lam is always 1, as in ERM.

        Example:
            >>> from mixup_core.laws import Beta, Erm
            >>> Beta(alpha=0.2).mixes, Erm().mixes
            (True, False)
        """
        return self.constant != 1

    @property
    def method(self) -> str | None:
        """Name of the training method that this law defines: erm, midpoint, uniform, or None.

        Figures reserve a colour for each of the three methods; other arms take other colours.

        Example:
            >>> from mixup_core.laws import Beta, Midpoint
            >>> Midpoint().method, Beta(alpha=1.0).method, Beta(alpha=0.2).method
            ('midpoint', 'uniform', None)
        """
        return None

    @property
    def caption(self) -> str:
        """Name of this law in captions; by default `the TAG law`.

        Example:
            >>> from mixup_core.laws import Beta, Midpoint
            >>> Beta(alpha=0.2).caption, Midpoint().caption
            ('Beta(0.2, 0.2)', 'lam = 1/2')
        """
        return f"the {self.tag} law"

    def label_entropy(self, digamma: "Callable[[Floats], Floats] | None" = None) -> float:
        """Return the mean entropy of a mixed label of two different classes, in nats.

            E[-lam ln lam - (1 - lam) ln(1 - lam)]

        It lies between 0, without mixing, and ln 2 = 0.693, for lam = 1/2.

        Args:
            digamma: Digamma function for closed forms; None means SciPy's. Image runs pass
                PyTorch's, which differs in the last bits, so that they reproduce stored records.

        Example:
            >>> from mixup_core.laws import Beta, Midpoint
            >>> [round(law.label_entropy(), 4) for law in (Beta(alpha=1.0), Midpoint())]
            [0.5, 0.6931]
        """
        del digamma
        nodes = self.nodes(_NODES)
        return float((special.entr(nodes) + special.entr(1 - nodes)).mean())

    def has_nodes(self, count: int) -> bool:
        """Return whether `count` equally weighted values of lam (from `nodes`) represent the law.

        They do not if the law is discrete and a probability is not a multiple of 1 / count.

        Example:
            >>> from mixup_core.laws import Discrete
            >>> law = Discrete(values=(0.5, 1.0), shares=(0.75, 0.25))
            >>> law.has_nodes(8), law.has_nodes(10)
            (True, False)
        """
        del count
        return True

    def require_nodes(self, config: Any) -> None:
        """Check that `config.nodes` equally weighted values of lam can represent this law.

        Raises:
            RuleError: If they cannot, see `has_nodes`; with `law` and `nodes` of the configuration.

        Example:
            >>> from types import SimpleNamespace
            >>> from mixup_core.laws import Beta
            >>> law = Beta(alpha=1.0)
            >>> law.require_nodes(SimpleNamespace(law=law, nodes=10))  # no error
        """
        rule = "every share of a discrete law must be a multiple of 1/nodes"
        require(self.has_nodes(config.nodes), rule, config, "nodes", "law")

    def moments_within(self, low: float, high: float) -> tuple[float, float]:
        """Return P(low <= lam <= high) and E[lam 1(low <= lam <= high)], with ends in [0, 1].

        Example:
            >>> from mixup_core.laws import Beta
            >>> Beta(alpha=1.0).moments_within(0.0, 0.5)
            (0.5, 0.125)
        """
        nodes = self.nodes(_NODES)
        inside = (low <= nodes) & (nodes <= high)
        return float(inside.mean()), float((nodes * inside).mean())


@dataclass(frozen=True, kw_only=True, slots=True)
class ConstantLaw(Law):
    """Base class of laws whose lam is always equal to the class variable `constant`."""

    constant: ClassVar[float]

    def quantiles(self, levels: Floats) -> Floats:
        return np.full(np.shape(levels), self.constant)

    def draw(self, shape: int | tuple[int, ...], rng: "np.random.Generator") -> Floats:
        del rng
        return np.full(shape, self.constant)

    @property
    def mean(self) -> float:
        return self.constant

    @property
    def variance(self) -> float:
        return 0.0

    @property
    def is_symmetric(self) -> bool:
        return self.constant == 0.5

    def label_entropy(self, digamma: object = None) -> float:
        del digamma
        return -math.fsum(p * math.log(p) for p in (self.constant, 1 - self.constant) if p)

    @property
    def method(self) -> str | None:
        return self.tag
