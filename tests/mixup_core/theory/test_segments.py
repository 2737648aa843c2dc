import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mixup_core.rules import RuleError
from mixup_core.theory.segments import distances_to_segments, mixed_distances


def _nearest(x: np.ndarray, u: np.ndarray, v: np.ndarray, low: float, high: float) -> float:
    """Return the least ||lam u + (1 - lam) v - x||, found by search."""

    def distance(lam: float) -> float:
        return float(np.linalg.norm(lam * u + (1 - lam) * v - x))

    if low == high:
        return distance(low)
    found = minimize_scalar(distance, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    return min(found.fun, distance(low), distance(high))


def test_distances_to_segments_by_hand() -> None:
    starts, ends = np.array([[0.0, 0.0], [5.0, 5.0]]), np.array([[2.0, 0.0], [5.0, 5.0]])
    points = np.array([[1.0, 1.0], [3.0, 0.0], [-3.0, 4.0], [5.0, 6.0], [1.0, 0.0]])
    np.testing.assert_allclose(distances_to_segments(points, starts, ends), [1, 1, 5, 1, 0])


@pytest.mark.parametrize("endpoints", ["both", "either"])
@pytest.mark.parametrize("lam_range", [(0.0, 1.0), (0.4, 0.7), (0.5, 0.5)])
def test_mixed_distances_are_those_of_a_search_over_every_pair(
    endpoints: str, lam_range: tuple[float, float]
) -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.normal(3, 1, size=(9, 4)), np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    expected = []
    for index, x in enumerate(points):
        distances = []
        for i, j in np.ndindex(9, 9):
            others = sum(int(labels[end] != labels[index]) for end in (i, j))
            if others == 2 or (endpoints == "either" and others == 1 and index not in (i, j)):
                distances.append(_nearest(x, points[i], points[j], *lam_range))
        expected.append(min(distances))
    found = mixed_distances(points, labels, endpoints=endpoints, lam_range=lam_range)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_alternating_line_collides_and_two_far_clusters_do_not() -> None:
    line, labels = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0])
    np.testing.assert_allclose(mixed_distances(line, labels), [1, 0, 1], atol=1e-7)
    clusters = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    sides = np.array([0, 0, 1, 1])
    np.testing.assert_allclose(mixed_distances(clusters, sides), 9)
    np.testing.assert_allclose(mixed_distances(clusters, sides, endpoints="either"), 9 / 82**0.5)


def test_a_single_class_has_no_pair_of_others() -> None:
    with pytest.raises(RuleError, match="point of another class"):
        mixed_distances(np.eye(3), np.zeros(3))


def test_a_range_outside_the_segment_is_refused() -> None:
    with pytest.raises(RuleError, match="least lam <= greatest lam"):
        mixed_distances(np.eye(3), np.arange(3), lam_range=(0.5, 1.5))
