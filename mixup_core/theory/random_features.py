"""RANDOM_FEATURES: gradient descent on mixed data, with its closed form; risk falls, then rises.

n points x ~ U[-1, 1]^{d0} with labels f(x) = ||x||^2 are mixed into m = n^2 examples (x~, Y~), with
one lam for each ordered pair. Mixing adds noise to the label:

    Z = Y~ - f(x~) = lam (1 - lam) ||x - x'||^2.

For a rho-strongly convex f, Z >= (rho/2) lam (1 - lam) ||x - x'||^2; for this f, rho = 2 and both
sides are equal. A linear model theta on random features phi(x) = tanh(2 (W x + b)) / sqrt(d) is
trained by gradient descent on ||theta^T Phi - Y~||^2 / (2 m) with a constant step eta; the columns
of Phi are the m vectors phi(x~). Let theta* and theta_noise be the least-squares weights for the
labels f(x~) and Z. After t steps, the coordinate along an eigenvector of Phi Phi^T / m with the
eigenvalue mu is

    theta_t - theta* = (1 - eta mu)^t (theta_0 - theta*) + (1 - (1 - eta mu)^t) theta_noise.

Gradient descent thus reaches theta* in some directions before it fits the noise in others: the
population risk falls, then rises. Gradient flow has e^{-eta mu t} in place of (1 - eta mu)^t.

Source: Liu et al. 2023, arXiv:2303.01475, section 4, lemma 2, equation (2) and theorem 2. Sizes are
choices of this project. Slides on this paper give (1 +- gamma)^2 as limits of the eigenvalues of
Gaussian features, gamma = d / m; correct are (1 +- sqrt(gamma))^2 (Marchenko & Pastur 1967).
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, Range
from mixup_core.contracts import weights_of
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Seed
from mixup_core.seeding import stream
from mixup_core.theory.synthetic import ArrayProcess, Arrays, Metrics, metric, synthetic_problem

INITIAL_SD = 0.1
"""Standard deviation of the initial weights: theta_0 ~ N(0, INITIAL_SD^2 I)."""
FEATURE_BOUND = 2.0
"""Constant C1 of theorem 2: ||phi(x)||^2 <= C1 / 2, because |tanh| is below 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomFeaturesConfig(Checked):
    """Configuration of a linear model on random features; record e is measured after 2^e steps."""

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "random-features"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam, drawn once per pair. Under ERM, each point occurs n times, unmixed."""
    inputs: Count = 5
    """Dimension d0 of the points."""
    points: Annotated[int, Range(2, 200)] = 40
    """Number of points, n in the source."""
    features: Annotated[int, Range(1, 1000)] = 60
    """Number of features, d in the source."""
    test_points: Count = 4000
    """Number of test points, from which the population risk is estimated."""
    lr: Annotated[float, Range(0, 2, "()")] = 1.0
    """Step size eta. The largest eigenvalue is at most 1, so any eta below 2 is stable."""
    epochs: Annotated[int, Range(1, 26)] = 21
    """Number of records; the last is measured after 2^(epochs - 1) steps."""
    seed: Seed = 0
    """Seed of the points, the random features, the initial weights and lam."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Regression:
    """Least-squares problem of a run: its matrices and vectors, with closed forms of its solution.

    The features of the m mixed examples are the columns of Phi, (d, m); Y~ are their labels.
    "In the eigenbasis" means in coordinates along the eigenvectors of `gram` = Phi Phi^T / m.
    """

    gram: Floats
    """Matrix Phi Phi^T / m, (d, d)."""
    slope: Floats
    """Vector Phi Y~ / m, (d,)."""
    eigenvalues: Floats
    """Eigenvalues mu of `gram`, (d,), ascending; those below rounding error are 0."""
    basis: Floats
    """Eigenvectors of `gram` as columns, (d, d)."""
    solution: Floats
    """Weights theta* for the labels without noise, in the eigenbasis, (d,); 0 where mu is 0."""
    noise: Floats
    """Least-squares weights theta_noise for the label noise alone, in the eigenbasis, (d,)."""
    noise_bound: float
    """Largest squared label noise, max Z^2: the constant C2 of theorem 2."""
    initial: Floats
    """Initial weights theta_0, (d,)."""
    test_features: Floats
    """Features of the test points, in the eigenbasis: (test points, d)."""
    test_labels: Floats
    """Labels of the test points: (test points,)."""

    def after(self, decayed: Floats, initial: Floats) -> Floats:
        """Return the weights after the time t of gradient flow, in the eigenbasis of `gram`: (d,).

            fraction theta_0 + (1 - fraction) (theta* + theta_noise),   fraction = e^{-eta mu t}

        The last two are added first, which avoids cancellation where mu is tiny and both are large.
        """
        return np.exp(decayed) * initial - np.expm1(decayed) * (self.solution + self.noise)

    def descended(self, lr: float, steps: int, initial: Floats) -> Floats:
        """Return the weights after t steps of gradient descent, in the eigenbasis of `gram`: (d,).

        (1 - eta mu)^t theta_0 + (1 - (1 - eta mu)^t) (theta* + theta_noise)
        """
        factor = 1 - lr * self.eigenvalues
        with np.errstate(divide="ignore"):
            left = np.where(factor > 0, np.log1p(-np.minimum(lr * self.eigenvalues, 1)), -np.inf)
        gained = np.where(factor > 0, -np.expm1(steps * left), 1 - factor**steps)
        return factor**steps * initial + gained * (self.solution + self.noise)

    def risk(self, theta: Floats) -> float:
        """Return the mean squared test error of weights theta, given in the eigenbasis."""
        return float(((self.test_features @ theta - self.test_labels) ** 2).mean())

    def expected_risk(self, decayed: Floats) -> float:
        """Return the mean squared test error of gradient flow over random initial weights theta_0.

        The mean is the error of the mean weights plus the variance of the predictions.
        """
        spread = INITIAL_SD**2 * ((self.test_features * np.exp(decayed)) ** 2).sum(axis=1).mean()
        return self.risk(self.after(decayed, np.zeros_like(decayed))) + float(spread)

    def bound(self, decayed: Floats) -> float:
        """Return an upper bound of the expected risk of gradient flow minus the risk R* of theta*.

            C1 sum_k [(xi^2 + theta*_k^2) e^{-2 eta mu_k t} + (C2 / mu_k) (1 - e^{-eta mu_k t})^2]
            + 2 sqrt(C1 R* zeta),   zeta = sum_k max(xi^2 + theta*_k^2, C2 / mu_k),

        with C1 / 2 a bound of ||phi(x)||^2, C2 the largest squared label noise, and xi the standard
        deviation of the initial weights. The weight along an eigenvector with mu_k = 0 never
        changes, so C2 / mu_k is replaced by 0.

        Source: Liu et al. 2023, arXiv:2303.01475, theorem 2.
        """
        start = INITIAL_SD**2 + self.solution**2
        moves = self.eigenvalues > 0
        noise = np.zeros_like(start)
        noise[moves] = self.noise_bound / self.eigenvalues[moves]
        spread = (start * np.exp(2 * decayed) + noise * np.expm1(decayed) ** 2).sum()
        zeta = np.maximum(start, noise).sum()
        return float(
            FEATURE_BOUND * spread + 2 * math.sqrt(FEATURE_BOUND * self.risk(self.solution) * zeta)
        )


def mixed_pairs(config: RandomFeaturesConfig) -> tuple[Floats, Floats, Floats]:
    """Draw a run's n points and mix all ordered pairs; return inputs, labels and label noise Z.

    The shapes are (n^2, d0), (n^2,) and (n^2,).
    """
    shape = config.points, config.inputs
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    points = stream(config.seed, "training points").uniform(-1, 1, size=shape)
    lam = weights_of(config.law, (config.points, config.points), stream(config.seed, "mixing"))
    inputs = lam[..., None] * points[:, None] + (1 - lam[..., None]) * points
    values = (points**2).sum(axis=1)
    labels = lam * values[:, None] + (1 - lam) * values
    distances = ((points[:, None] - points) ** 2).sum(axis=2)
    noise = lam * (1 - lam) * distances
    return inputs.reshape(-1, config.inputs), labels.ravel(), noise.ravel()


def regression(config: RandomFeaturesConfig) -> Regression:
    """Draw the data and features of a run; return its least-squares problem."""
    rng = stream(config.seed, "initial weights")
    weights = rng.normal(size=(config.features, config.inputs)) / math.sqrt(config.inputs)
    shifts = rng.uniform(-1, 1, size=config.features)
    initial = INITIAL_SD * rng.normal(size=config.features)

    def featured(x: Floats) -> Floats:
        features: Floats = np.tanh(2 * (x @ weights.T + shifts)) / math.sqrt(config.features)
        return features

    inputs, labels, noise = mixed_pairs(config)
    phi = featured(inputs)
    gram = phi.T @ phi / len(phi)
    eigenvalues, basis = np.linalg.eigh(gram)
    eigenvalues = np.where(eigenvalues > 1e-14 * eigenvalues[-1], eigenvalues, 0.0)
    inverse = np.zeros_like(eigenvalues)
    inverse[eigenvalues > 0] = 1 / eigenvalues[eigenvalues > 0]
    shape = config.test_points, config.inputs
    fresh = stream(config.seed, "test points").uniform(-1, 1, size=shape)
    return Regression(
        gram=gram,
        slope=phi.T @ labels / len(phi),
        eigenvalues=eigenvalues,
        basis=basis,
        solution=inverse * (basis.T @ (phi.T @ (labels - noise))) / len(phi),
        noise=inverse * (basis.T @ (phi.T @ noise)) / len(phi),
        noise_bound=float((noise**2).max()),
        initial=initial,
        test_features=featured(fresh) @ basis,
        test_labels=(fresh**2).sum(axis=1),
    )


def spectral_edges(ratio: float) -> tuple[float, float]:
    """Return the smallest and largest eigenvalue of X X^T / m, in the limit of large d and m.

    X is a (d, m) matrix of standard Gaussian entries. The two limits are (1 -+ sqrt(gamma))^2 with
    gamma = d / m <= 1.

    Source: Marchenko & Pastur 1967, Mathematics of the USSR-Sbornik 1, 457.
    """
    return (1 - math.sqrt(ratio)) ** 2, (1 + math.sqrt(ratio)) ** 2


def edge_errors(config: RandomFeaturesConfig) -> tuple[float, float]:
    """Compare eigenvalues of a random Gaussian matrix with two formulas for their limits.

    The matrix X has the size of the run's feature matrix, (d, n^2).
    """
    shape = config.features, config.points**2
    drawn = stream(config.seed, "test points", 1).normal(size=shape)
    found = np.linalg.eigvalsh(drawn @ drawn.T / shape[1])[[0, -1]]
    ratio = shape[0] / shape[1]
    true, printed = spectral_edges(ratio), ((1 - ratio) ** 2, (1 + ratio) ** 2)
    return float(np.abs(found - true).max()), float(np.abs(found - printed).max())


def start(config: RandomFeaturesConfig) -> ArrayProcess:
    problem, edges = regression(config), edge_errors(config)
    initial = problem.basis.T @ problem.initial
    lowest = problem.risk(problem.solution)

    def advance(epoch: int, state: Arrays) -> Metrics:
        taken, wanted = (2 ** (epoch - 1) if epoch else 0), 2**epoch
        theta = state["theta"]
        step, pull = config.lr * problem.gram, config.lr * problem.slope
        for _ in range(wanted - taken):
            theta = theta - (step @ theta - pull)
        state["theta"] = theta
        flowing = -config.lr * problem.eigenvalues * wanted
        reached = problem.basis.T @ theta
        stepped = problem.descended(config.lr, wanted, initial)
        risk = problem.risk(reached)
        state["best"] = np.minimum(state["best"], risk)
        excess = problem.expected_risk(flowing) - lowest
        bound = problem.bound(flowing)
        return {
            "step": float(wanted),
            "risk/measured": risk,
            "risk/best": float(state["best"][0]),
            "risk/rise": risk - float(state["best"][0]),
            "risk/noiseless": lowest,
            "risk/excess": excess,
            "bound/value": bound,
            "bound/violation": max(0.0, excess - bound),
            "descent/discrete_error": float(np.abs(reached - stepped).max()),
            "descent/flow_error": float(np.abs(reached - problem.after(flowing, initial)).max()),
            "edges/error": edges[0],
            "edges/printed_error": edges[1],
        }

    state = {"theta": problem.initial.copy(), "best": np.full(1, np.finfo(float).max)}
    return ArrayProcess(epochs=config.epochs, state=state, advance=advance)


RANDOM_FEATURES = synthetic_problem(
    RandomFeaturesConfig,
    start,
    title="random-feature regression on mixed data (Liu et al. 2023, theorem 2)",
    metrics={
        "risk/measured": metric("population risk", least=0.0),
        "risk/best": metric("smallest population risk so far", least=0.0),
        "risk/rise": metric("risk minus the smallest so far", least=0.0),
        "risk/noiseless": metric("risk of the solution without label noise", least=0.0),
        "risk/excess": metric("expected risk minus risk without label noise"),
        "bound/value": metric("bound of theorem 2 on the expected excess risk"),
        "bound/violation": metric("violation of the bound of theorem 2"),
        "descent/discrete_error": metric(
            "distance to the closed form of gradient descent", least=0.0
        ),
        "descent/flow_error": metric("distance to the gradient flow", least=0.0),
        "edges/error": metric(
            "distance of the extreme eigenvalues from the Marchenko-Pastur edges", least=0.0
        ),
        "edges/printed_error": metric(
            "distance of the extreme eigenvalues from the printed edges", least=0.0
        ),
    },
    headline=("risk/measured",),
    axis=Axis(label="gradient steps", unit="doubling", scale="log", metric="step"),
    objectives=("risk/measured", "risk/best"),
    unsearchable=("test_points",),
    population=lambda config, _: (config.inputs, config.points, config.features),
    beside=("risk/best", "risk/rise", "bound/violation"),
    curves=(("risk/excess",), ("bound/value",), ("descent/flow_error",)),
    setting=lambda config, _: (
        f"{config.points} points, {config.features} random features, labels ||x||^2"
    ),
)
