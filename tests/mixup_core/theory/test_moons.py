from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons

from mixup_core.config.building import built
from mixup_core.laws import Beta, Erm
from mixup_core.rules import RuleError
from mixup_core.theory.moons import (
    ROWS,
    MoonsConfig,
    boundary,
    boundary_by_row,
    decision_map,
    distances_to_segments,
    draw_moons,
    largest_margin,
    start,
)
from tests.mixup_core.theory.processes import assert_resumes_anywhere, finished, last

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


def test_boundary_segments_lie_on_the_zeros_of_a_linear_function() -> None:
    nodes = np.linspace(-2, 2, 8)
    x, y = np.meshgrid(nodes, nodes, indexing="ij")
    starts, ends = boundary(nodes, 3 * x - y + 0.4)
    for place in (starts, ends):
        np.testing.assert_allclose(3 * place[:, 0] - place[:, 1] + 0.4, 0, atol=1e-12)
    expected = np.hypot(4 / 3, 4)  # the line crosses the square from side to side
    assert np.linalg.norm(ends - starts, axis=1).sum() == pytest.approx(expected)


def test_boundary_by_row_finds_the_place_of_a_linear_boundary() -> None:
    """Two units that are positive everywhere give a line: class 1 where x_1 < x_2 / 2 + 1/4."""
    config = replace(CONFIG, hidden=2)
    weights = np.zeros(config.network.size)
    first, first_bias, second, second_bias = config.network.parts(weights)
    first[:], first_bias[:] = np.eye(2), 10.0
    second[:, 1], second_bias[1] = [-1.0, 0.5], 5.25
    found = boundary_by_row(config, weights)
    assert tuple(found) == ROWS
    for row, place in found.items():
        assert place == pytest.approx(row / 2 + 0.25, abs=0.02)


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


def test_values_without_a_sign_change_have_no_boundary() -> None:
    starts, _ = boundary(np.linspace(0, 1, 4), np.ones((4, 4)))
    assert len(starts) == 0


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


@pytest.mark.parametrize("law", [Erm(), Beta(alpha=1.0)])
def test_a_run_resumed_at_any_epoch_ends_with_the_same_bits(law: Erm | Beta) -> None:
    assert_resumes_anywhere(replace(CONFIG, law=law))


def test_a_longer_run_starts_with_the_records_of_a_shorter_run() -> None:
    assert finished(replace(CONFIG, epochs=4))[:3] == finished(CONFIG)


@pytest.mark.slow
def test_mixup_increases_the_spread_of_the_boundary() -> None:
    small = replace(MoonsConfig(), points=100, hidden=200, epochs=8)
    erm, uniform = last(small), last(replace(small, law=Beta(alpha=1.0)))
    assert erm["train/error"] == uniform["train/error"] == 0
    assert uniform["boundary/spread"] > 1.2 * erm["boundary/spread"]


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"points": 2}, "points >= 4"),
        ({"points": 5}, "points must be even"),
        ({"noise": -0.1}, "0 <= noise < inf"),
        ({"separation": -0.1}, "0 <= separation < inf"),
        ({"hidden": 0}, "hidden >= 1"),
        ({"lr": 0.0}, "0 < lr < inf"),
        ({"resolution": 5}, "10 <= resolution"),
        ({"steps_per_epoch": 0}, "steps_per_epoch >= 1"),
        ({"epochs": 0}, "epochs >= 1"),
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, object], rule: str) -> None:
    with pytest.raises(RuleError, match=rule):
        built(MoonsConfig, values)


def test_distances_to_segments_match_values_computed_by_hand() -> None:
    starts, ends = np.array([[0.0, 0.0], [5.0, 5.0]]), np.array([[2.0, 0.0], [5.0, 5.0]])
    points = np.array([[1.0, 1.0], [3.0, 0.0], [-3.0, 4.0], [5.0, 6.0], [1.0, 0.0]])
    np.testing.assert_allclose(distances_to_segments(points, starts, ends), [1, 1, 5, 1, 0])
