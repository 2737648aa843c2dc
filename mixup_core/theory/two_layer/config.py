"""TwoLayerConfig: configuration of a run of the two-layer network, with its data and solver."""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from mixup_core.laws import Erm, Law
from mixup_core.problem import Seed
from mixup_core.rules import require
from mixup_core.theory.operations import PatchLinear, PatchOperation
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Count, NonNegative, Positive, Range, Whole


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchData(Checked):
    """General multi-view data: labelled points made of patches, in the coordinates of the features.

    A point of class y has C_P patches `beta_p v_{y,1}`, C_P patches `(delta2 - beta_p) v_{y,2}` and
    P - 2 C_P patches of noise, `sum_{j <= Q} sum_l gamma_{j,l} v_{s_j,l}` with classes s_j != y.
    For L > 2 features, which the source does not have, there are C_P patches of each feature, with
    the correlations delta1 + (delta2 - L delta1) times a uniform point of the simplex.

    The definition leaves some choices open, which are fixed here: the patches have the same order
    in every point, the s_j are uniform and distinct, and all noise patches of a point are the same
    vector, which is thus stored once with its multiplicity.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, Definition 4.1. The defaults satisfy the
    relations of its Assumption 4.3.
    """

    classes: Annotated[int, Range(2)] = 6
    """k, the number of classes; each has L features, so the data span L k dimensions."""
    features: Annotated[int, Range(2, 10)] = 2
    """L, the number of features of each class; 2 in the source."""
    points_per_class: Count = 20
    """N / k, the number of training points of each class."""
    signal_patches: Count = 1
    """C_P, the number of signal patches of each feature in a point."""
    noise_patches: Whole = 12
    """Number of noise patches of a point, divided by k^2: (P - L C_P) / k^2."""
    noise_classes: Count = 1
    """Q, the number of classes whose features the noise contains; below k."""
    delta1: Positive = 0.5
    """Smallest correlation of a signal patch with its feature, at most delta2 / L."""
    delta2: Positive = 2.0
    """Sum of the correlations of corresponding patches of all features; with two features, beta is
    uniform on [delta1, delta2 - delta1].
    """
    delta3: NonNegative = 0.0425
    """Smallest noise coefficient gamma, in units of k^-1.5."""
    delta4: NonNegative = 0.055
    """Largest noise coefficient gamma, in units of k^-1.5, at least delta3; gamma is uniform in
    between.
    """
    test_points_per_class: Count = 100
    """Number of test points of each class, on which features and test error are measured."""

    def check(self) -> None:
        """Check rules between fields.

        Raises:
            RuleError: If fields contradict each other.
        """
        fits = self.noise_classes < self.classes
        require(fits, "noise_classes < classes", self, "noise_classes", "classes")
        fits = self.features * self.delta1 <= self.delta2
        require(fits, "features * delta1 <= delta2", self, "delta1", "delta2", "features")
        require(self.delta3 <= self.delta4, "delta3 <= delta4", self, "delta3", "delta4")

    @property
    def patches(self) -> int:
        """P, the number of patches of a point."""
        return self.features * self.signal_patches + self.noise_patches * self.classes**2

    @property
    def span(self) -> int:
        """The dimension of the span of all features, L k."""
        return self.features * self.classes

    @property
    def noise_range(self) -> tuple[float, float]:
        """The smallest and the largest noise coefficient gamma."""
        unit = self.classes**-1.5
        return self.delta3 * unit, self.delta4 * unit


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchNetwork(Checked):
    """A sum over neurons and patches: `g_y(x) = sum_{r <= m} sum_{p <= P} R(<w_{y,r}, x^(p)>)`.

    Sizes are in the units of Assumption 4.3, so they scale with the number of classes.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 4.
    """

    neurons: Count = 3
    """Number of neurons of each class, divided by the number of classes: m / k."""
    power: Annotated[int, Range(2, 16)] = 8
    """alpha, the exponent of the activation. A larger exponent slows the growth of weak
    correlations.
    """
    rho: Positive = 1.0
    """Input from which the activation is linear, times the number of classes: rho k."""
    init: Positive = 0.09
    """Standard deviation of the initial weights, divided by rho: sigma_0 / rho. As sigma_0 =
    d^-1/2, the dimension of the patches is d = (init * rho)^-2.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Rkc(Checked):
    """Solver of the gradient flow: second-order Runge-Kutta-Chebyshev steps with error control."""

    name: ClassVar = "rkc"

    tolerance: Annotated[float, Range(0, 1, "(]")] = 0.01
    """Largest estimated error of one step in any weight w, divided by rho + |w|. At k = 6,
    tolerances from 0.001 to 0.1 give the same learned features at every record, except that the
    time at which ERM learns its slowest feature varies by up to a tenth.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Descent(Checked):
    """Solver by full-batch gradient descent, as in the theorems; its time is step x iterations."""

    name: ClassVar = "gradient-descent"

    step: Positive = 15.0
    """Step size; with the default configuration, training is unstable above about 20."""


Integrator = Rkc | Descent
"""Union of the methods that minimise the loss."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoLayerConfig(Checked):
    """Configuration of one network trained from one seed and measured at fixed flow times.

    Record n (from 0) is at the flow time first_time * 10^(n / records_per_decade), for every law
    and integrator. A run ends with its last record, whatever it has learned.
    """

    problem: ClassVar = "two-layer"

    data: PatchData = field(default_factory=PatchData)
    network: PatchNetwork = field(default_factory=PatchNetwork)
    law: Law = field(default_factory=Erm)
    """Law of the weight lam of a pair of points. ERM uses the points themselves."""
    operation: PatchOperation = field(default_factory=PatchLinear)
    """Operation that mixes the patches of two points by the weight lam."""
    pairs_per_class: Count = 30
    """Number of ordered pairs (i, j), divided by k. Pairs are drawn once, uniformly with
    replacement (i may equal j), each with one lam: the training loss is a Monte Carlo mean of the
    mixed loss J_MM. The pairs are the same under every law.
    """
    nodes: Annotated[int, Range(0, 1000)] = 0
    """Number of values of lam with which each pair is mixed: quantiles of the law, of equal weight.
    0 means one drawn lam per pair; the loss of a Beta law then depends on few values of
    lam, which may determine the final result.
    """
    integrator: Integrator = field(default_factory=Rkc)
    first_time: Positive = 10.0
    """Flow time of the first record."""
    records_per_decade: Count = 10
    """Number of records per factor of 10 in flow time."""
    epochs: Count = 61
    """Number of records; 61 reach the flow time 10^7."""
    seed: Seed = 0
    """Seed of all random draws of the run."""

    def check(self) -> None:
        """Check rules between fields.

        Raises:
            RuleError: If the last flow time exceeds 10^15, or the nodes do not fit the operation or
                law.
        """
        require(
            math.log10(self.first_time) + (self.epochs - 1) / self.records_per_decade <= 15,
            "the last record must be at a flow time of at most 10^15",
            self,
            "epochs",
            "records_per_decade",
            "first_time",
        )
        fits = self.nodes == 0 or self.operation == PatchLinear()
        require(fits, "nodes need the linear operation", self, "nodes", "operation")
        if self.nodes:
            self.law.require_nodes(self)

    @property
    def classes(self) -> int:
        """The number of classes, k."""
        return self.data.classes

    @property
    def neurons(self) -> int:
        """The number of neurons of each class, m."""
        return self.network.neurons * self.classes

    @property
    def rho(self) -> float:
        """The input from which the activation is linear."""
        return self.network.rho / self.classes

    @property
    def init(self) -> float:
        """sigma_0, the standard deviation of the initial weights."""
        return self.network.init * self.rho

    def time_of(self, epoch: int) -> float:
        """Return the flow time at a record, counted from 0."""
        return float(self.first_time * 10.0 ** (epoch / self.records_per_decade))
