"""Law: how the weight lam of an image is distributed; an open choice, one member per file."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mixup_core.tree.catalogue import Catalogue
from mixup_core.tree.checked import Checked

if TYPE_CHECKING:
    import numpy as np

    from mixup_core.arrays import Floats

_NODES = 4096
"""Quantiles whose mean stands for an expectation that has no closed form. The label entropy of
Beta(a, a) is within 5e-6 of its closed form for a from 0.05 to 8."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Law(Checked, ABC):
    """The distribution of the weight lam of an image, on [0, 1]; its partner has 1 - lam.

    A law needs `quantiles` alone. All else follows from them, and a law that knows a closed form
    defines it. The file of a law is read when a study is: it imports NumPy and SciPy where it
    computes.
    """

    catalogue: ClassVar[Catalogue["Law"]] = Catalogue("law")

    tag: ClassVar[str]
    """Name of the law in study files."""
    constant: ClassVar[float | None] = None
    """The value of lam if it is never random."""

    @abstractmethod
    def quantiles(self, levels: "Floats") -> "Floats":
        """Return the quantiles of lam, each in [0, 1], in the shape of the levels in [0, 1]."""

    def draw(self, shape: int | tuple[int, ...], rng: "np.random.Generator") -> "Floats":
        """Return drawn weights of a shape. A constant law draws nothing."""
        return self.quantiles(rng.random(shape))

    def nodes(self, count: int) -> "Floats":
        """Return values of equal weight that stand for the law: (count,), or (1,) if constant.

        They are the quantiles of (i + 1/2) / count, the midpoint rule in the distribution function:
        a mean over them is the law's expectation up to O(1 / count^2) where the integrand is smooth
        in the quantile.
        """
        import numpy as np

        if self.constant is not None:
            return np.array([self.constant])
        places: Any = (np.arange(count) + 0.5) / count
        return self.quantiles(places)

    def nodes_of_pairs(self, count: int) -> "Floats":
        """Return nodes that stand for the law in a mean over all ordered pairs of points.

        A pair mixed by 1 - lam is the reversed pair mixed by lam. Of an even number of nodes of a
        symmetric law, the half that is at least 1/2 stands for all.
        """
        nodes = self.nodes(count)
        return nodes[nodes >= 0.5] if self.is_symmetric else nodes

    @property
    def mean(self) -> float:
        """E[lam]."""
        return float(self.nodes(_NODES).mean())

    @property
    def variance(self) -> float:
        """E[(lam - E[lam])^2]."""
        return float(self.nodes(_NODES).var())

    @property
    def is_symmetric(self) -> bool:
        """True if 1 - lam has the same distribution as lam."""
        nodes = self.nodes(64)
        return bool((abs(nodes + nodes[::-1] - 1) < 1e-9).all())

    @property
    def mixes(self) -> bool:
        """True if partners have a weight at all."""
        return self.constant != 1

    @property
    def method(self) -> str | None:
        """Name of the plain method with this law, which has one colour in all figures, or None."""
        return None

    @property
    def caption(self) -> str:
        """Name of the law in captions."""
        return f"the {self.tag} law"

    def label_entropy(self, digamma: "Callable[[Floats], Floats] | None" = None) -> float:
        """Return the mean entropy of a label mixed from two classes, in nats.

            E[-lam ln lam - (1 - lam) ln(1 - lam)]

        Args:
            digamma: The digamma function of an array, for laws whose closed form needs it; None:
                SciPy's. Recorded numbers of images are bound to the last bits of PyTorch's.
        """
        del digamma
        from scipy.special import entr

        nodes = self.nodes(_NODES)
        return float((entr(nodes) + entr(1 - nodes)).mean())

    def has_nodes(self, count: int) -> bool:
        """Return whether a few nodes stand for the law: a law of steps needs whole ones."""
        del count
        return True

    def moments_within(self, low: float, high: float) -> tuple[float, float]:
        """Return P(low <= lam <= high) and E[lam; low <= lam <= high]."""
        nodes = self.nodes(_NODES)
        inside = (low <= nodes) & (nodes <= high)
        return float(inside.mean()), float((nodes * inside).mean())


@dataclass(frozen=True, kw_only=True, slots=True)
class ConstantLaw(Law):
    """A law under which lam never varies: `constant`."""

    constant: ClassVar[float]

    def quantiles(self, levels: "Floats") -> "Floats":
        """Return the constant in the shape of the levels."""
        import numpy as np

        return np.full(np.shape(levels), self.constant)

    def draw(self, shape: int | tuple[int, ...], rng: "np.random.Generator") -> "Floats":
        """Return the constant in a shape."""
        del rng
        import numpy as np

        return np.full(shape, self.constant)

    @property
    def mean(self) -> float:
        """The constant."""
        return self.constant

    @property
    def variance(self) -> float:
        """Zero."""
        return 0.0

    @property
    def is_symmetric(self) -> bool:
        """True if the constant is 1/2."""
        return self.constant == 0.5

    def label_entropy(self, digamma: object = None) -> float:
        """Return the mean label entropy in nats: 0 for 1, ln 2 for 1/2."""
        del digamma
        return -math.fsum(p * math.log(p) for p in (self.constant, 1 - self.constant) if p)

    @property
    def method(self) -> str | None:
        """The tag."""
        return self.tag
