"""Crossed designs: indices of functions whose variance shares are known."""

import numpy as np
import pytest
from numpy.typing import NDArray

from reports.numbers.crossed import Index, indices

Array = NDArray[np.float64]

ISHIGAMI = [(0.3139, 0.5576), (0.4424, 0.4424), (0.0, 0.2437)]
"""First-order and total index of each input, a = 7, b = 0.1 (Saltelli et al. 2008, page 179)."""


def ishigami(x: Array) -> Array:
    value: Array = np.sin(x[0]) + 7 * np.sin(x[1]) ** 2 + 0.1 * x[2] ** 4 * np.sin(x[0])
    return value


def added(x: Array) -> Array:
    value: Array = 10 + 3 * x[0] + 2 * x[1] + x[2]
    return value


def moved(a: Array, b: Array, place: int) -> Array:
    x = a.copy()
    x[place] = b[place]
    return x


def ends(index: Index) -> tuple[float, float]:
    assert index.low is not None
    assert index.high is not None
    return index.low, index.high


def test_intervals_of_sobol_indices_contain_the_true_indices_of_ishigami() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-np.pi, np.pi, (2, 3, 2000))
    for place, (first, total) in enumerate(ISHIGAMI):
        found = indices(ishigami(a), ishigami(b), ishigami(moved(a, b, place)))
        for index, part, widest in ((found.first, first, 0.12), (found.total, total, 0.14)):
            low, high = ends(index)
            assert low <= part <= high
            assert high - low < widest


@pytest.mark.parametrize("n", [20, 100])
def test_intervals_of_sobol_indices_cover_the_parts_of_an_additive_function(n: int) -> None:
    """Normal inputs: both indices are 9/14, 4/14 and 1/14. 300 designs each."""
    rng, hits = np.random.default_rng(n), np.zeros((3, 2))
    for _ in range(300):
        a, b = rng.normal(size=(2, 3, n))
        for place, part in enumerate((9 / 14, 4 / 14, 1 / 14)):
            found = indices(added(a), added(b), added(moved(a, b, place)))
            both = ends(found.first), ends(found.total)
            hits[place] += [low <= part <= high for low, high in both]
            assert all(0 <= low < high <= 1 for low, high in both)
    assert (hits / 300 >= 0.9).all()
    assert (hits[0] / 300 <= 0.985).all()


def test_estimates_of_sobol_indices_follow_the_published_formulas() -> None:
    a, b, m = [1.0, 3.0, 2.0, 6.0], [2.0, 5.0, 1.0, 4.0], [1.5, 3.5, 2.5, 5.0]
    found = indices(a, b, m)
    variance = (np.var(a, ddof=1) + np.var(b, ddof=1)) / 2
    first = np.mean((np.array(b) - 3) * (np.array(m) - np.array(a))) / variance
    total = np.mean((np.array(a) - np.array(m)) ** 2) / (2 * variance)
    assert (found.first.estimate, found.total.estimate) == pytest.approx((first, total))


def test_too_few_contexts_and_a_constant_metric_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 3 contexts"):
        indices([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"need a metric that varies, got 1\.0"):
        indices([1.0] * 3, [1.0] * 3, [1.0, 2.0, 3.0])
