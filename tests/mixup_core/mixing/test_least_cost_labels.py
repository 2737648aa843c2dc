"""Least-cost labels of a grid, compared with all possible labellings."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from mixup_core.mixing.least_cost_labels import least_cost_labels

Grid = NDArray[np.float64]


def _cost(labels: NDArray[np.int64], costs: Grid, below: Grid, beside: Grid) -> float:
    scale = (costs.shape[2] - 1) ** 2
    found = np.take_along_axis(costs, labels[..., None], axis=2).sum()
    found += (below * np.diff(labels, axis=0) ** 2).sum() / scale
    return float(found + (beside * np.diff(labels, axis=1) ** 2).sum() / scale)


@pytest.mark.parametrize("labels", [2, 3, 4])
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2), (2, 3)])
def test_the_labelling_has_the_least_cost_of_all_labellings(
    labels: int, shape: tuple[int, int]
) -> None:
    rng = np.random.default_rng(labels)
    rows, columns = shape
    for _ in range(6):
        costs = rng.normal(size=(*shape, labels))
        below, beside = (
            rng.exponential(size=(rows - 1, columns)),
            rng.exponential(size=(rows, columns - 1)),
        )
        every = itertools.product(range(labels), repeat=rows * columns)
        least = min(_cost(np.array(each).reshape(shape), costs, below, beside) for each in every)
        found = least_cost_labels(costs, below, beside)
        assert _cost(found, costs, below, beside) == pytest.approx(least, abs=1e-4)


def test_equal_costs_give_the_lowest_labels() -> None:
    shape = 3, 3
    found = least_cost_labels(np.zeros((*shape, 3)), np.ones((2, 3)), np.ones((3, 2)))
    assert found.tolist() == np.zeros(shape).tolist()
