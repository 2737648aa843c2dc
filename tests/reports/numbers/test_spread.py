"""Tests of the spread over seeds and of crossed designs."""

import numpy as np
import pytest
from numpy.typing import NDArray

from reports.numbers.spread import indices, split_spread


@pytest.mark.parametrize("sd", [0.0, 0.005, 0.02])
def test_the_spread_over_the_distribution_is_estimated_and_covered(sd: float) -> None:
    """Ten networks and 1,000 images; errors on the distribution are normal; 600 studies."""
    rng, hits, squares = np.random.default_rng(1), 0, []
    for _ in range(600):
        hardness = rng.uniform(0.1, 0.9, 1000)
        chances = hardness + rng.normal(0, sd, 10)[:, None]
        spread = split_spread(rng.random((10, 1000)) < chances)
        hits += (spread.distribution_low or 0.0) <= sd <= (spread.distribution_high or 0.0)
        squares.append((spread.total**2 - spread.noise**2) * 1000 / 999)
    error = np.std(squares) / np.sqrt(600)
    assert np.mean(squares) == pytest.approx(sd**2, abs=3 * error)
    assert 0.92 <= hits / 600 <= 0.99


def test_the_parts_of_the_spread_agree_with_the_formula() -> None:
    is_wrong = np.array([[1, 0, 1, 0], [1, 1, 1, 0], [1, 0, 0, 0]], bool)
    spread = split_spread(is_wrong)
    assert spread.total == pytest.approx(np.std([0.5, 0.75, 0.25], ddof=1))
    assert spread.noise == pytest.approx(np.sqrt((0 + 1 / 3 + 1 / 3 + 0) / 16))
    rest = (spread.total**2 - spread.noise**2) * 4 / 3
    assert spread.distribution == pytest.approx(np.sqrt(rest))


def test_equal_errors_on_different_images_have_no_spread_and_no_interval() -> None:
    spread = split_spread(np.eye(3, 160, dtype=bool))
    assert (spread.total, spread.total_low, spread.total_high) == (0, None, None)


Array = NDArray[np.float64]


def added(x: Array) -> Array:
    value: Array = 10 + 3 * x[0] + 2 * x[1] + x[2]
    return value


def moved(a: Array, b: Array, place: int) -> Array:
    x = a.copy()
    x[place] = b[place]
    return x


@pytest.mark.parametrize("n", [20, 100])
def test_intervals_of_sobol_indices_cover_the_parts_of_an_additive_function(n: int) -> None:
    """Normal inputs: both indices are 9/14, 4/14 and 1/14. 300 designs each."""
    rng, hits = np.random.default_rng(n), np.zeros((3, 2))
    for _ in range(300):
        a, b = rng.normal(size=(2, 3, n))
        for place, part in enumerate((9 / 14, 4 / 14, 1 / 14)):
            both = [(i.low, i.high) for i in indices(added(a), added(b), added(moved(a, b, place)))]
            hits[place] += [low <= part <= high for low, high in both]
            assert all(0 <= low < high <= 1 for low, high in both)
    assert (hits / 300 >= 0.9).all()
    assert (hits[0] / 300 <= 0.985).all()


def test_estimates_of_sobol_indices_follow_the_published_formulas() -> None:
    a, b, m = [1.0, 3.0, 2.0, 6.0], [2.0, 5.0, 1.0, 4.0], [1.5, 3.5, 2.5, 5.0]
    found = [index.estimate for index in indices(a, b, m)]
    variance = (np.var(a, ddof=1) + np.var(b, ddof=1)) / 2
    first = np.mean((np.array(b) - 3) * (np.array(m) - np.array(a))) / variance
    total = np.mean((np.array(a) - np.array(m)) ** 2) / (2 * variance)
    assert found == pytest.approx([first, total])


def test_too_few_contexts_and_a_constant_metric_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 3 contexts"):
        indices([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"need a metric that varies, got 1\.0"):
        indices([1.0] * 3, [1.0] * 3, [1.0, 2.0, 3.0])
