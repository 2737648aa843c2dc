from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons

from mixup_core.laws import Beta, Law, Midpoint
from mixup_core.theory.moons import (
    MoonsConfig,
    boundary,
    decision_map,
    distances_to_segments,
    draw_moons,
    largest_margin,
    local_weights,
    start,
)

CONFIG = MoonsConfig(points=40, hidden=20, resolution=20, steps_per_epoch=10, epochs=3, lr=1e-2)


def test_moons_are_the_scikit_learn_moons_folded_and_separated() -> None:
    reference, sides = make_moons(n_samples=40, noise=None, shuffle=False)
    points, labels = draw_moons(replace(CONFIG, noise=0.0, separation=0.25))
    np.testing.assert_array_equal(labels, sides)
    height = reference[:, 1] - 0.3 * (2 * sides - 1)
    height = np.abs(height - height.mean()) + 0.25
    np.testing.assert_allclose(points[:, 0], np.where(sides == 0, height, -height), atol=1e-12)
    np.testing.assert_allclose(points[:, 1], reference[:, 0] - 0.5, atol=1e-12)


def test_drawn_classes_keep_the_configured_separation() -> None:
    points, labels = draw_moons(CONFIG)
    assert (np.where(labels == 0, 1, -1) * points[:, 0]).min() >= 0.1
    assert largest_margin(points, labels) >= 0.1


def test_the_boundary_of_a_circle_is_a_circle() -> None:
    nodes = np.linspace(-2, 2, 101)
    values = np.hypot(*np.meshgrid(nodes, nodes, indexing="ij")) - 1.3
    starts, ends = boundary(nodes, values)
    assert np.linalg.norm(ends - starts, axis=1).sum() == pytest.approx(2.6 * np.pi, rel=1e-3)
    probes = np.array([[0.0, 0.0], [0.0, 1.8], [0.5, 0.0]])
    found = distances_to_segments(probes, starts, ends)
    np.testing.assert_allclose(found, [1.3, 0.5, 0.8], atol=1e-3)


@pytest.mark.parametrize(("middle", "length"), [(0.5, 1), (-0.5, -1)])
def test_a_saddle_joins_the_corners_that_have_the_sign_of_its_centre(
    middle: float, length: int
) -> None:
    values = np.array([[1.0, -1.0], [-1.0, 1.0]]) + middle
    starts, ends = boundary(np.array([0.0, 1.0]), values)
    assert len(starts) == 2
    first, second = (starts + ends) / 2
    lies_off_diagonal = abs(first[0] - first[1]) > 0.2 and abs(second[0] - second[1]) > 0.2
    assert lies_off_diagonal == (length > 0)


def test_margins_are_distances_to_the_boundary_and_below_their_bound() -> None:
    process = start(replace(CONFIG, epochs=30))
    metrics = list(process)[-1].metrics
    weights = process.state["weights"]
    points, labels = draw_moons(CONFIG)
    fine = np.linspace(-2, 2, 400)
    grid = np.stack(np.meshgrid(fine, fine, indexing="ij"), axis=-1).reshape(-1, 2)
    logits = CONFIG.network.logits(weights, grid)
    sides = logits[:, 1] > logits[:, 0]
    expected = min(
        np.linalg.norm(grid[sides != bool(label)] - point, axis=1).min()
        for point, label in zip(points, labels, strict=True)
    )
    assert metrics["train/error"] == 0
    assert metrics["margin/least"] == pytest.approx(expected, abs=0.03)
    assert 0 <= metrics["margin/lost"] == metrics["margin/bound"] - metrics["margin/least"]
    nodes, values = decision_map(CONFIG, weights)
    assert values.shape == (21, 21)
    assert nodes[0] == -2


def test_distances_to_segments_match_values_computed_by_hand() -> None:
    starts, ends = np.array([[0.0, 0.0], [5.0, 5.0]]), np.array([[2.0, 0.0], [5.0, 5.0]])
    points = np.array([[1.0, 1.0], [3.0, 0.0], [-3.0, 4.0], [5.0, 6.0], [1.0, 0.0]])
    np.testing.assert_allclose(distances_to_segments(points, starts, ends), [1, 1, 5, 1, 0])


RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(8, 2))
LABELS = np.array([0, 1, 0, 1, 2, 2, 0, 1])


@pytest.mark.parametrize("law", [Beta(alpha=1.0), Beta(alpha=0.3), Midpoint()], ids=str)
def test_local_weights_match_drawn_pairs(law: Law) -> None:
    places = RNG.normal(size=(5, 2))
    found = local_weights(places, POINTS, LABELS, law, 0.5)
    draws = 400_000
    first, second = RNG.integers(8, size=(2, draws))
    lam = law.draw(draws, RNG)
    mixed = lam[:, None] * POINTS[first] + (1 - lam[:, None]) * POINTS[second]
    for place, weights in zip(places, found, strict=True):
        near = np.linalg.norm(mixed - place, axis=1) <= 0.5
        drawn = np.bincount(LABELS[first], lam * near, 3)
        drawn += np.bincount(LABELS[second], (1 - lam) * near, 3)
        np.testing.assert_allclose(weights, drawn / draws, atol=4e-3)
