import numpy as np

from mixup_core.theory.segments import distances_to_segments


def test_distances_to_segments_match_values_computed_by_hand() -> None:
    starts, ends = np.array([[0.0, 0.0], [5.0, 5.0]]), np.array([[2.0, 0.0], [5.0, 5.0]])
    points = np.array([[1.0, 1.0], [3.0, 0.0], [-3.0, 4.0], [5.0, 6.0], [1.0, 0.0]])
    np.testing.assert_allclose(distances_to_segments(points, starts, ends), [1, 1, 5, 1, 0])
