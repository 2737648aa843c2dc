"""GAUSSIAN_FEATURES: risk of a linear model with d features that is trained on m noisy labels.

The data are m labels y = theta*^T phi + Z with Gaussian features phi ~ N(0, I_d) and the true
weights theta* ~ N(0, I_d / d). The noise Z = lam (1 - lam) ||x - x'||^2, with x, x' ~
U[-1, 1]^{d0}, is the one that mixing causes; it is independent of the features. The m vectors phi
are the columns of Phi, and y and Z are now rows of all m values. Gradient flow of
||theta^T Phi - y||^2 / (2 m) starts at theta = 0. At time t, along an eigenvector of Phi Phi^T / m
with eigenvalue mu, the fraction e^{-mu t} of theta* is not yet learned, and the fraction 1 -
e^{-mu t} of Z Phi^+ is fitted (Phi^+ is the pseudo-inverse). With gamma = d / m fixed and d,
m -> infinity, the eigenvalues mu have the Marchenko-Pastur distribution F, and the expected excess
risk E ||theta_t - theta*||^2 is

    int e^{-2 mu t} dF  +  gamma E[Z^2] int (1 - e^{-mu t})^2 / mu dF.

As t -> infinity it tends to gamma E[Z^2] / (1 - gamma) for gamma < 1, and to
1 - 1 / gamma + E[Z^2] / (gamma - 1) for gamma > 1: it is unbounded at d = m.

Source: Liu et al. 2023, arXiv:2303.01475, section 4, for noise in mixed labels and its effect on
gradient descent. This project derived the closed form, after Hastie et al. 2022, arXiv:1903.08560.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, Range
from mixup_core.contracts import weights_of
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Seed
from mixup_core.seeding import stream
from mixup_core.theory.synthetic import ArrayProcess, Arrays, Metrics, metric, synthetic_problem

FIRST_TIME = 2.0**-4
"""Time of gradient flow at the first record."""
_ANGLES = 20_000
"""Number of quadrature nodes for integrals over the distribution F of the eigenvalues."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GaussianFeaturesConfig(Checked):
    """Configuration of a linear model trained by gradient flow; record e is at time 2^e / 16."""

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "gaussian-features"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam, which causes the label noise; ERM causes none."""
    ratio: Annotated[float, Range(0.01, 20)] = 0.5
    """Number of features per label, gamma = d / m; d is rounded to an integer."""
    samples: Annotated[int, Range(10, 2000)] = 400
    """Number of labels, m."""
    inputs: Count = 5
    """Dimension d0 of the points x whose mixing causes the label noise."""
    epochs: Annotated[int, Range(1, 30)] = 25
    """Number of records of a run."""
    seed: Seed = 0
    """Seed of the features, the true weights and the noise."""

    @property
    def features(self) -> int:
        """Number d of features of the linear model, at least 1."""
        return max(1, round(self.ratio * self.samples))


def noise_square(law: Law, inputs: int) -> float:
    """Return the mean square E[Z^2] of the label noise Z = lam (1 - lam) ||x - x'||^2.

        E[Z^2] = E[lam^2 (1 - lam)^2] E||x - x'||^4

    The points x and x' are uniform on [-1, 1]^d0, so that a coordinate of x - x' has the second
    moment 2/3 and the fourth moment 16/15.
    """
    nodes = law.nodes(4096)
    fourth = inputs * 16 / 15 + inputs * (inputs - 1) * 4 / 9
    return float(((nodes * (1 - nodes)) ** 2).mean()) * fourth


def expected_excess(ratio: float, time: float, noise: float) -> float:
    """Return the expected excess risk of gradient flow at a time, in the limit of large d and m."""
    angles = (np.arange(_ANGLES) + 0.5) * math.pi / _ANGLES
    values = 1 + ratio + 2 * math.sqrt(ratio) * np.cos(angles)
    # dF = 2 sin^2(angle) / (pi mu) d angle, of mass min(1, 1 / gamma); the rest is at mu = 0.
    weights = 2 * np.sin(angles) ** 2 / values / _ANGLES
    left = (weights * np.exp(-2 * values * time)).sum() + max(0.0, 1 - 1 / ratio)
    fitted = (weights * np.expm1(-values * time) ** 2 / values).sum()
    return float(left + ratio * noise * fitted)


def start(config: GaussianFeaturesConfig) -> ArrayProcess:
    samples, features = config.samples, config.features
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    rng = stream(config.seed, "training points")
    phi = rng.normal(size=(features, samples))
    points = rng.uniform(-1, 1, (2, samples, config.inputs))
    lam = weights_of(config.law, samples, stream(config.seed, "mixing"))
    noise = lam * (1 - lam) * ((points[0] - points[1]) ** 2).sum(axis=1)
    truth = stream(config.seed, "initial weights").normal(size=features) / math.sqrt(features)
    basis, scales, inputs = np.linalg.svd(phi, full_matrices=False)
    eigenvalues = scales**2 / samples
    inside = basis.T @ truth
    outside = max(0.0, float(truth @ truth - inside @ inside))
    fitted = inputs @ noise / scales
    square = noise_square(config.law, config.inputs)

    def advance(epoch: int, state: Arrays) -> Metrics:
        time = FIRST_TIME * 2.0**epoch
        away = -np.exp(-eigenvalues * time) * inside - np.expm1(-eigenvalues * time) * fitted
        risk = outside + float(away @ away)
        state["best"] = np.minimum(state["best"], risk)
        theory = expected_excess(features / samples, time, square)
        return {
            "flow/time": time,
            "risk/excess": risk,
            "risk/best": float(state["best"][0]),
            "risk/rise": risk - float(state["best"][0]),
            "risk/theory": theory,
            "risk/theory_error": abs(risk - theory),
        }

    state = {"best": np.full(1, np.finfo(float).max)}
    return ArrayProcess(epochs=config.epochs, state=state, advance=advance)


GAUSSIAN_FEATURES = synthetic_problem(
    GaussianFeaturesConfig,
    start,
    title="linear models on noisy labels near d / m = 1 (Liu et al. 2023, section 4)",
    metrics={
        "risk/excess": metric("excess risk", least=0.0),
        "risk/best": metric("smallest excess risk so far", least=0.0),
        "risk/rise": metric("excess risk minus the smallest so far", least=0.0),
        "risk/theory": metric("expected excess risk, closed form", least=0.0),
        "risk/theory_error": metric("distance between excess risk and closed form", least=0.0),
    },
    headline=("risk/excess",),
    axis=Axis(label="flow time", unit="doubling", scale="log", metric="flow/time"),
    objectives=("risk/excess", "risk/best"),
    unsearchable=("inputs", "samples", "ratio"),
    beside=("risk/theory", "risk/best", "risk/rise"),
    curves=(("risk/theory",), ("risk/rise",)),
    setting=lambda config, _: f"{config.samples} labels, {config.features} Gaussian features",
)
