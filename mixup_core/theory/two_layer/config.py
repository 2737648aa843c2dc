"""TwoLayerConfig: everything that decides the numbers of one run of the two-layer network."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from mixup_core.laws import Erm, Law
from mixup_core.problem import MAX_SEED
from mixup_core.rules import require
from mixup_core.theory.operations import Linear, Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchData:
    """General multi-view data: labelled points made of patches, in the features' own coordinates.

    A point of class y has C_P patches `beta_p v_{y,1}`, C_P patches `(delta2 - beta_p) v_{y,2}` and
    P - 2 C_P patches of noise, `sum_{j <= Q} sum_l gamma_{j,l} v_{s_j,l}` with classes s_j != y.

    Free in the definition and fixed here: the patches stand in the same order in every point, the
    s_j are uniform and differ, and all noise patches of a point are the same vector, which so
    counts once with its multiplicity.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, Definition 4.1. The defaults keep the
    relations of its Assumption 4.3.
    """

    classes: int = 6
    """k, at least 2; each class has two features, so the data span 2 k dimensions."""
    points_per_class: int = 20
    """N / k, at least 1."""
    signal_patches: int = 1
    """C_P, at least 1."""
    noise_patches: int = 12
    """(P - 2 C_P) / k^2, at least 0."""
    noise_classes: int = 1
    """Q, in 1..k-1."""
    delta1: float = 0.5
    """Least correlation of a signal patch with its feature, in (0, delta2 / 2]."""
    delta2: float = 2.0
    """Sum of the correlations of a signal patch and its partner, finite; beta is uniform on
    [delta1, delta2 - delta1]."""
    delta3: float = 0.0425
    """Least noise gamma, in units of k^-1.5, at least 0."""
    delta4: float = 0.055
    """Greatest noise gamma, in units of k^-1.5, finite and at least delta3; gamma is uniform."""
    test_points_per_class: int = 100
    """Fresh points that features and test error are measured on, at least 1."""

    def __post_init__(self) -> None:
        """Check ranges and combinations.

        Raises:
            RuleError: If a value is out of range, or the parts contradict each other.
        """
        require(self.classes >= 2, "classes >= 2", self, "classes")
        require(self.points_per_class >= 1, "points_per_class >= 1", self, "points_per_class")
        require(self.signal_patches >= 1, "signal_patches >= 1", self, "signal_patches")
        require(self.noise_patches >= 0, "noise_patches >= 0", self, "noise_patches")
        require(
            1 <= self.noise_classes < self.classes,
            "1 <= noise_classes < classes",
            self,
            "noise_classes",
            "classes",
        )
        require(
            0 < 2 * self.delta1 <= self.delta2 < math.inf,
            "0 < 2 delta1 <= delta2 < inf",
            self,
            "delta1",
            "delta2",
        )
        require(
            0 <= self.delta3 <= self.delta4 < math.inf,
            "0 <= delta3 <= delta4 < inf",
            self,
            "delta3",
            "delta4",
        )
        require(
            self.test_points_per_class >= 1,
            "test_points_per_class >= 1",
            self,
            "test_points_per_class",
        )

    @property
    def patches(self) -> int:
        """P, the number of patches of a point."""
        return 2 * self.signal_patches + self.noise_patches * self.classes**2

    @property
    def noise_range(self) -> tuple[float, float]:
        """Least and greatest gamma: delta3 and delta4 of the definition."""
        unit = self.classes**-1.5
        return self.delta3 * unit, self.delta4 * unit


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchNetwork:
    """A sum over neurons and patches: `g_y(x) = sum_{r <= m} sum_{p <= P} R(<w_{y,r}, x^(p)>)`.

    Sizes are given in the units of Assumption 4.3, so that they follow the number of classes.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 4.
    """

    neurons: int = 3
    """m / k: neurons of each class over the number of classes, at least 1."""
    power: int = 8
    """alpha of the activation, in 2..16: how slowly a weak correlation grows."""
    rho: float = 1.0
    """rho k: where the activation becomes linear, times the number of classes; positive."""
    init: float = 0.09
    """sigma_0 / rho: standard deviation of the initial weights over rho; positive. As
    sigma_0 = d^-1/2, the dimension of the patches is d = (init * rho)^-2."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            RuleError: If a value is out of range.
        """
        require(self.neurons >= 1, "neurons >= 1", self, "neurons")
        require(2 <= self.power <= 16, "2 <= power <= 16", self, "power")
        require(0 < self.rho < math.inf, "0 < rho < inf", self, "rho")
        require(0 < self.init < math.inf, "0 < init < inf", self, "init")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rkc:
    """The gradient flow, by Runge-Kutta-Chebyshev steps of second order with error control."""

    name: ClassVar = "rkc"

    tolerance: float = 0.01
    """Greatest estimated error of one step in any weight w, over rho + |w|; in (0, 1]. At k = 6 the
    classes of every record are the same from 0.001 to 0.1 but for when ERM's slowest feature comes,
    which is within a tenth."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If the tolerance is out of range.
        """
        require(0 < self.tolerance <= 1, "0 < tolerance <= 1", self, "tolerance")


@dataclass(frozen=True, kw_only=True, slots=True)
class Descent:
    """Plain full-batch gradient descent, as the theorems have it; its time is step x iterations."""

    name: ClassVar = "gradient-descent"

    step: float = 15.0
    """Step size, positive and finite; the default configuration is unstable beyond about 20."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If the step is out of range.
        """
        require(0 < self.step < math.inf, "0 < step < inf", self, "step")


Integrator = Rkc | Descent
"""How the weights move down the loss."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoLayerConfig:
    """One run: one network trained from one seed, measured at fixed flow times.

    Record n (from 0) stands at the flow time first_time * 10^(n / records_per_decade), under every
    law and integrator, and a run ends with its last record, whatever it has learned by then.
    """

    problem: ClassVar = "two-layer"

    data: PatchData = field(default_factory=PatchData)
    network: PatchNetwork = field(default_factory=PatchNetwork)
    law: Law = field(default_factory=Erm)
    """Law of the weight lam of a pair of points. ERM has no pairs: it takes the points."""
    operation: Operation = field(default_factory=Linear)
    """What is done with lam, patch by patch."""
    pairs_per_class: int = 30
    """Ordered pairs (i, j) over k, at least 1. They are drawn once, uniformly with replacement (a
    point may meet itself), each with one lam: the loss is a Monte Carlo mean of J_MM. The pairs are
    the same under every law."""
    integrator: Integrator = field(default_factory=Rkc)
    first_time: float = 10.0
    """Flow time of the first record, positive and finite."""
    records_per_decade: int = 10
    """Records per factor of 10 in flow time, at least 1."""
    epochs: int = 61
    """Number of records: 61 reach the flow time 10^7."""
    seed: int = 0
    """Names all random draws of the run, in 0..2^63-1."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            RuleError: If a value is out of range, or the last flow time is beyond 10^15.
        """
        require(self.pairs_per_class >= 1, "pairs_per_class >= 1", self, "pairs_per_class")
        require(0 < self.first_time < math.inf, "0 < first_time < inf", self, "first_time")
        require(self.records_per_decade >= 1, "records_per_decade >= 1", self, "records_per_decade")
        require(self.epochs >= 1, "epochs >= 1", self, "epochs")
        require(0 <= self.seed <= MAX_SEED, "0 <= seed <= 2^63-1", self, "seed")
        require(
            math.log10(self.first_time) + (self.epochs - 1) / self.records_per_decade <= 15,
            "the last record is at a flow time of at most 10^15",
            self,
            "epochs",
            "records_per_decade",
            "first_time",
        )

    @property
    def classes(self) -> int:
        """The number of classes, k."""
        return self.data.classes

    @property
    def neurons(self) -> int:
        """The neurons of each class, m."""
        return self.network.neurons * self.classes

    @property
    def rho(self) -> float:
        """Where the activation becomes linear."""
        return self.network.rho / self.classes

    @property
    def init(self) -> float:
        """sigma_0, the standard deviation of the initial weights."""
        return self.network.init * self.rho

    def time_of(self, epoch: int) -> float:
        """Return the flow time of a record, counted from 0."""
        return float(self.first_time * 10.0 ** (epoch / self.records_per_decade))
