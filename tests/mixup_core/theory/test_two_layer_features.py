import numpy as np

from mixup_core.arrays import Floats
from mixup_core.theory.two_layer.config import PatchData, PatchNetwork, TwoLayerConfig
from mixup_core.theory.two_layer.features import correlations, feature_accuracy, is_right
from mixup_core.theory.two_layer.network import PatchOutputs
from mixup_core.theory.two_layer.points import fresh_points

CONFIG = TwoLayerConfig(
    epochs=1,
    data=PatchData(classes=4, signal_patches=2, test_points_per_class=50),
    network=PatchNetwork(neurons=1),
)


def knowing(features: list[tuple[int, int]]) -> Floats:
    """Return weights whose first neuron of class y has correlation 3 with v_{y,l}, l from 1."""
    weights = np.zeros((4, 4, 8))
    for y, feature in features:
        weights[y, 0, 2 * y + feature - 1] = 3.0
    return weights


def accuracy(weights: Floats) -> tuple[Floats, Floats]:
    points = fresh_points(CONFIG)
    return feature_accuracy(PatchOutputs(points, CONFIG), points, weights)


def test_a_feature_counts_as_learned_when_it_alone_gives_the_class() -> None:
    alone, both = accuracy(knowing([(1, 1), (2, 2), (3, 1), (3, 2)]))
    assert alone.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]
    assert both.tolist() == [0, 1, 1, 1]


def test_a_tie_between_outputs_counts_as_wrong() -> None:
    outputs = np.array([[0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    assert is_right(outputs, np.array([0, 0, 0, 2])).tolist() == [False, False, True, True]
    alone, both = accuracy(np.zeros((4, 4, 8)))
    assert not alone.any()
    assert not both.any()


def test_feature_accuracy_matches_setting_the_patches_of_the_other_feature_to_zero() -> None:
    points = fresh_points(CONFIG)
    weights = np.random.default_rng(5).normal(0, 0.3, (4, 4, 8))
    alone, both = feature_accuracy(PatchOutputs(points, CONFIG), points, weights)
    for feature in range(2):
        patches = points.patches.copy()
        for point, y in enumerate(points.labels):
            patches[:-1, point, 2 * y + 1 - feature] = 0
        inputs = np.einsum("yrc,pnc->yrpn", weights, patches)
        rho, power = CONFIG.rho, 8
        excited = np.where(
            inputs < rho,
            np.maximum(inputs, 0) ** power / (power * rho ** (power - 1)),
            inputs - (1 - 1 / power) * rho,
        )
        outputs = np.einsum("yrpn,pn->yn", excited, points.counts)
        right = (outputs.argmax(axis=0) == points.labels).reshape(4, 50)
        np.testing.assert_array_equal(alone[:, feature], right.mean(axis=1))
    assert ((alone > 0) & (alone < 1)).any()
    assert alone.mean() != both.mean()


def test_correlations_sum_only_active_neurons_of_the_same_class() -> None:
    weights = np.zeros((4, 4, 8))
    weights[2, :, 5] = [0.49, 0.5, 1.0, -7.0]  # v_{2,2}
    weights[2, 0, 2] = 9.0  # v_{1,1}: another class
    weights[0, 1, 5] = 9.0  # a neuron of another class
    expected = np.zeros((4, 2))
    expected[2, 1] = 1.5
    np.testing.assert_array_equal(correlations(weights, 0.5), expected)
