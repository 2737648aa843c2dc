"""TwoLayerConfig: configuration of a run that trains the two-layer network on multi-view data."""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, NonNegative, Positive, Range, Whole
from mixup_core.laws import Erm, Law
from mixup_core.problem import Seed
from mixup_core.rules import require
from mixup_core.theory.patch_mixing import PatchLinear, PatchOperation


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchData(Checked):
    """Distribution of multi-view data: labelled points made of patches, with L features per class.

    A point of class y has P patches: C_P patches `beta_p v_{y,1}`, C_P patches
    `(delta2 - beta_p) v_{y,2}` with random beta_p in [delta1, delta2 - delta1], and P - 2 C_P
    patches of noise `sum_{j <= Q} sum_l gamma_{j,l} v_{s_j,l}` with Q classes s_j != y and random
    factors gamma_{j,l}. v_{y,l} is feature l of class y, L is `features`, C_P `signal_patches`, P
    `patches` and Q `noise_classes`. For L > 2 features, which the source does not have, there are
    C_P patches of each feature; their factors are uniform among those that are at least delta1 and
    sum to delta2 over the features.

    The source leaves some choices open. In this class the patches have the same order in every
    point, the s_j are uniform and distinct, and all noise patches of a point are the same vector,
    which is stored once, with the number of its copies.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, Definition 4.1. The defaults satisfy the
    relations of its Assumption 4.3.
    """

    classes: Annotated[int, Range(2)] = 6
    """Number k of classes; each class has L features, so the data span L k dimensions."""
    features: Annotated[int, Range(2, 10)] = 2
    """Number L of features of each class; 2 in the source."""
    points_per_class: Count = 20
    """Number of training points of each class, N / k."""
    signal_patches: Count = 1
    """Number C_P of signal patches of each feature in a point."""
    noise_patches: Whole = 12
    """Number of noise patches of a point, divided by k^2: (P - L C_P) / k^2."""
    noise_classes: Count = 1
    """Number Q of classes whose features a noise patch contains; below k."""
    delta1: Positive = 0.5
    """Smallest correlation of a signal patch with its feature, at most delta2 / L."""
    delta2: Positive = 2.0
    """Sum of the correlations of L signal patches, one of each feature, with their features."""
    delta3: NonNegative = 0.0425
    """Smallest noise coefficient gamma, in units of k^-1.5."""
    delta4: NonNegative = 0.055
    """Largest noise coefficient, as delta3; gamma is uniform between the two."""
    test_points_per_class: Count = 100
    """Number of test points of each class, for the test error and the learned features."""

    def check(self) -> None:
        fits = self.noise_classes < self.classes
        require(fits, "noise_classes < classes", self, "noise_classes", "classes")
        fits = self.features * self.delta1 <= self.delta2
        require(fits, "features * delta1 <= delta2", self, "delta1", "delta2", "features")
        require(self.delta3 <= self.delta4, "delta3 <= delta4", self, "delta3", "delta4")

    @property
    def patches(self) -> int:
        return self.features * self.signal_patches + self.noise_patches * self.classes**2

    @property
    def span(self) -> int:
        return self.features * self.classes

    @property
    def noise_range(self) -> tuple[float, float]:
        """The smallest and the largest factor gamma of a feature in a patch of noise."""
        unit = self.classes**-1.5
        return self.delta3 * unit, self.delta4 * unit


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchNetwork(Checked):
    """Network with the outputs `g_y(x) = sum_{r <= m} sum_{p <= P} R(<w_{y,r}, x^(p)>)`.

    The sums run over m neurons and P patches; R is the activation, linear above the input rho. The
    fields set m / k, rho k and sigma_0 / rho, with k the number of classes and sigma_0 the standard
    deviation of the initial weights, as in Assumption 4.3 of the source.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 4.
    """

    neurons: Count = 3
    """Number of neurons of each class, divided by the number of classes: m / k."""
    power: Annotated[int, Range(2, 16)] = 8
    """Exponent alpha of the activation. A larger one slows the growth of weak correlations."""
    rho: Positive = 1.0
    """Input rho above which the activation is linear, times the number of classes: rho k."""
    init: Positive = 0.09
    """Standard deviation sigma_0 of the initial weights, divided by rho; sigma_0 = d^-1/2."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rkc(Checked):
    """Settings of training by gradient flow, with second-order Runge-Kutta-Chebyshev steps.

    An estimate of the error of each step controls the step size.
    """

    # Frozen: each `name`, `problem`, field name and default in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name: ClassVar = "rkc"

    tolerance: Annotated[float, Range(0, 1, "(]")] = 0.01
    """Largest estimated error of one step in any weight w, divided by rho + |w|. At k = 6,
    tolerances from 0.001 to 0.1 give nearly the same learned features at every record.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Descent(Checked):
    """Settings of training by full-batch gradient descent, as in the theorems of the source.

    Flow time is the step size times the number of iterations.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 4.
    """

    name: ClassVar = "gradient-descent"

    step: Positive = 15.0
    """Step size. With the default configuration, training is unstable above about 20."""


Integrator = Rkc | Descent
"""Union of the solvers that minimise the loss."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoLayerConfig(Checked):
    """Configuration of a two-layer network that is trained and measured at fixed flow times.

    Flow time is the time of gradient flow, or step size times iterations of gradient descent.
    Record n (from 0) is measured at the flow time first_time * 10^(n / records_per_decade), for
    every law and solver. The last record ends the run, whatever the network has learned.
    """

    problem: ClassVar = "two-layer"

    data: PatchData = field(default_factory=PatchData)
    """Classes and patches of the training and test points."""
    network: PatchNetwork = field(default_factory=PatchNetwork)
    """Network that is trained."""
    law: Law = field(default_factory=Erm)
    """Law of the weight lam of a pair of points. Under ERM, points are not paired."""
    operation: PatchOperation = field(default_factory=PatchLinear)
    """Operation that mixes the patches of two points by the weight lam."""
    pairs_per_class: Count = 30
    """Number of ordered pairs (i, j) of training points, divided by k. They are drawn once, with
    replacement, and are the same under every law. The training loss is the mean over them.
    """
    nodes: Annotated[int, Range(0, 1000)] = 0
    """Number of quantiles of lam with which each pair is mixed; 0: one random lam per pair, of
    which a few may determine the result under a Beta law.
    """
    integrator: Integrator = field(default_factory=Rkc)
    """Method that computes the weights at the next time from the gradient of the loss."""
    first_time: Positive = 10.0
    """Flow time of the first record."""
    records_per_decade: Count = 10
    """Number of records per factor of 10 in flow time."""
    epochs: Count = 61
    """Number of records; 61 reach the flow time 10^7."""
    seed: Seed = 0
    """Seed of all random draws of the run."""

    def check(self) -> None:
        decades = math.log10(self.first_time) + (self.epochs - 1) / self.records_per_decade
        rule = "the last record must be at a flow time of at most 10^15"
        require(decades <= 15, rule, self, "epochs", "records_per_decade", "first_time")
        fits = self.nodes == 0 or self.operation == PatchLinear()
        rule = "nodes above 0 need the operation `linear`"
        require(fits, rule, self, "nodes", "operation")
        if self.nodes:
            self.law.require_nodes(self)

    @property
    def classes(self) -> int:
        return self.data.classes

    @property
    def neurons(self) -> int:
        return self.network.neurons * self.classes

    @property
    def rho(self) -> float:
        return self.network.rho / self.classes

    @property
    def init(self) -> float:
        return self.network.init * self.rho

    def time_of(self, epoch: int) -> float:
        """Return the flow time of a record; `epoch` is the number of the record, from 0."""
        return float(self.first_time * 10.0 ** (epoch / self.records_per_decade))
