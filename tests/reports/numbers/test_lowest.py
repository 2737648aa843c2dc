"""The expected lowest value of a random search."""

from itertools import combinations

import numpy as np
import pytest

from reports.numbers.lowest import expected_lowest


def test_the_expected_lowest_value_is_the_mean_over_all_subsets() -> None:
    values = [0.4, 0.1, 0.1, 0.7, 0.3]
    for n, expected in enumerate(expected_lowest(values), 1):
        lowest = [min(chosen) for chosen in combinations(values, n)]
        assert expected == pytest.approx(np.mean(lowest))
