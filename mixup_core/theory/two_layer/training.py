"""Training of a two-layer network, and what it has learned at fixed flow times."""

from typing import assert_never

import numpy as np

from mixup_core.arrays import Floats, Ints, NDArray, scipy
from mixup_core.problem import DivergedError
from mixup_core.theory.synthetic import ArrayProcess, Arrays, Metrics
from mixup_core.theory.two_layer.config import Descent, Rkc, TwoLayerConfig
from mixup_core.theory.two_layer.network import Landscape, PatchOutputs, initial_weights
from mixup_core.theory.two_layer.points import PatchSet, fresh_points, training_points, training_set
from mixup_core.theory.two_layer.solvers import DescentSolver, RkcSolver

LEARNED_ACCURACY = 0.95
"""A feature counts as learned if the accuracy with its patches alone is at least this high."""
_INFEASIBLE = 2
"""Status that `scipy.optimize.linprog` returns for a program without a solution."""


def start(config: TwoLayerConfig) -> ArrayProcess:
    points, fresh = training_points(config), fresh_points(config)
    outputs, fresh_outputs = PatchOutputs(points, config), PatchOutputs(fresh, config)
    trained = training_set(config, points)
    landscape, floor = Landscape(trained, config), trained.entropy
    is_separable = is_linearly_separable(points)
    solver = _solver(config, landscape)

    def measured(weights: Floats) -> dict[str, float]:
        alone, together = feature_accuracy(fresh_outputs, fresh, weights)
        learned = alone >= LEARNED_ACCURACY
        num_learned = learned.sum(axis=1)
        correlated = correlations(weights, config.rho / config.data.delta1)
        loss = landscape.loss(weights)
        metrics = {
            "features/both": np.mean(num_learned == config.data.features),
            "features/one": np.mean(num_learned == 1),
            "features/none": np.mean(num_learned == 0),
            "features/missing": np.mean(~learned),
            "features/min_accuracy": alone.min(),
            "features/mean_accuracy": alone.mean(),
            "train/error": np.mean(~is_right(outputs(weights), points.labels)),
            "test/error": 1 - together.mean(),
            "train/loss": loss,
            "train/excess_loss": loss - floor,
            "correlation/stronger": correlated.max(axis=1).mean(),
            "correlation/weaker": correlated.min(axis=1).mean(),
            "correlation/min": correlated.min(),
            "linear/separable": is_separable,
        }
        for y, feature in np.ndindex(alone.shape):
            place = f"class{y}/feature{feature + 1}"
            metrics[f"accuracy/{place}"] = alone[y, feature]
            metrics[f"correlation/{place}"] = correlated[y, feature]
        return {name: float(value) for name, value in metrics.items()}

    def advance(epoch: int, state: Arrays) -> Metrics:
        solver.load(state)
        try:
            solver.advance(config.time_of(epoch))
        except ArithmeticError as error:
            raise DivergedError(str(error), epoch) from error
        state.update(solver.state())
        flow = {"flow/time": solver.time, "flow/evaluations": float(solver.evaluations)}
        return measured(solver.y) | flow

    return ArrayProcess(epochs=config.epochs, state=solver.state(), advance=advance)


def _solver(config: TwoLayerConfig, landscape: Landscape) -> RkcSolver | DescentSolver:
    weights = initial_weights(config)
    match config.integrator:
        case Rkc(tolerance=tolerance):
            return RkcSolver(landscape.downhill, weights, tolerance, scale=config.rho)
        case Descent(step=step):
            return DescentSolver(landscape.downhill, weights, step)
        case _:
            assert_never(config.integrator)


def feature_accuracy(
    outputs: PatchOutputs, points: PatchSet, weights: Floats
) -> tuple[Floats, Floats]:
    """Return the accuracy on each class if points keep the patches of one feature, or all patches.

    A network has learned the feature l of class y if it still classifies points of class y
    correctly when all signal patches of other features are set to 0. Such patches add R(0) = 0
    (R is the activation) to every output, so they are left out.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, Definition 4.5, applied to test points.
    """
    parts = points.counts * outputs.by_patch(weights)
    features = weights.shape[2] // len(parts)
    signals = (len(points.counts) - 1) // features
    by_feature = parts[:, :-1].reshape(len(parts), features, signals, -1).sum(axis=2)
    noise = parts[:, -1]
    alone = [_accuracy(by_feature[:, feature] + noise, points) for feature in range(features)]
    return np.stack(alone, axis=1), _accuracy(by_feature.sum(axis=1) + noise, points)


def is_right(outputs: Floats, labels: Ints) -> "NDArray[np.bool_]":
    """Return True for each point that is classified correctly; a tie counts as wrong: (points,)."""
    is_own = np.arange(len(outputs))[:, None] == labels
    rivals = np.where(is_own, -np.inf, outputs).max(axis=0)
    return np.asarray(np.where(is_own, outputs, -np.inf).max(axis=0) > rivals)


def correlations(weights: Floats, threshold: float) -> Floats:
    """Return how strongly the active neurons of each class correlate with its features: (k, L).

        C_{y,l} = sum over B_{y,l} of <w_{y,r}, v_{y,l}>,
        B_{y,l} = {r: <w_{y,r}, v_{y,l}> >= rho / delta1}

    w_{y,r} are the weights of neuron r of class y, v_{y,l} is feature l of this class, rho the
    input above which the activation is linear, and delta1 the smallest correlation of a signal
    patch with its feature. For a learned feature, C_{y,l} is at least of order log k.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, appendix B.
    """
    classes, neurons, _ = weights.shape
    own = weights.reshape(classes, neurons, classes, -1)[range(classes), :, range(classes)]
    summed: Floats = np.where(own >= threshold, own, 0.0).sum(axis=1)
    return summed


def _accuracy(outputs: Floats, points: PatchSet) -> Floats:
    labels, classes = points.labels, len(outputs)
    right = is_right(outputs, labels)
    return np.bincount(labels, right, classes) / np.bincount(labels, None, classes)


def is_linearly_separable(points: PatchSet) -> bool:
    """Return whether some linear model classifies all points correctly.

    A linear model `g_y(x) = sum_p <w_y, x^(p)>` depends only on the sum of a point's patches. A
    model without errors exists if and only if the inequalities `<w_y - w_s, sum of patches> >= 1`,
    for every point of a class y and every class s != y, have a solution. They are solved as a
    linear program; the 1 is no restriction, because weights can be scaled.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, Proposition 4.4.
    """
    classes = len(points.targets)
    rivals = (points.labels[:, None] + np.arange(1, classes)) % classes
    each = np.eye(classes)
    signs = (each[rivals] - each[points.labels][:, None]).reshape(-1, classes)
    pooled = np.repeat(points.pooled, classes - 1, axis=0)
    blocks = [scipy.sparse.csr_array(signs[:, [y]] * pooled) for y in range(classes)]
    found = scipy.optimize.linprog(
        np.zeros(classes * pooled.shape[1]),
        A_ub=scipy.sparse.hstack(blocks, format="csr"),
        b_ub=np.full(len(signs), -1.0),
        bounds=(None, None),
        method="highs",
    )
    if found.status not in {0, _INFEASIBLE}:
        raise ArithmeticError(
            "SciPy's linear program for whether a linear model separates the training points ended "
            f"without an answer: {found.message}"
        )
    return bool(found.status == 0)
