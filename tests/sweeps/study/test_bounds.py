import numpy as np
import pytest
from scipy import special

from sweeps.study.bounds import crossing, nominal_levels, overall_level

LOOKS = (3, 5, 8, 12, 20)


def simulated(looks: tuple[int, ...], levels: tuple[float, ...], number: int) -> float:
    """Return the fraction of simulated studies without a difference that cross a bound."""
    drawn = np.random.default_rng(3).standard_normal((number, looks[-1]))
    sums, squares = np.cumsum(drawn, axis=1), np.cumsum(drawn * drawn, axis=1)
    crossed = np.zeros(number, dtype=bool)
    for n, level in zip(looks, levels, strict=True):
        mean = sums[:, n - 1] / n
        sd = np.sqrt((squares[:, n - 1] - n * mean * mean) / (n - 1))
        crossed |= np.abs(mean) * np.sqrt(n) / sd > special.stdtrit(n - 1, 1 - level / 2)
    return float(crossed.mean())


@pytest.mark.parametrize(
    ("looks", "levels"),
    [
        (LOOKS, (0.0128,) * 5),
        ((5, 10), (0.05, 0.05)),
        ((3, 4, 6, 9, 20), (0.02,) * 5),
        ((2, 3, 4, 5, 6), (0.02,) * 5),
        ((3, 5, 8, 11, 15, 20), (0.005, 0.008, 0.01, 0.012, 0.014, 0.016)),
    ],
)
def test_the_crossing_probability_agrees_with_simulated_studies(
    looks: tuple[int, ...], levels: tuple[float, ...]
) -> None:
    number = 60_000
    found, expected = simulated(looks, levels, number), crossing(looks, levels)
    assert abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / number)


@pytest.mark.parametrize("spending", [0.0, 0.3, 0.45, 0.5])
@pytest.mark.parametrize("level", [0.05, 0.05 / 3, 0.05 / 20])
def test_nominal_levels_of_looks_give_the_overall_level(spending: float, level: float) -> None:
    levels = nominal_levels(LOOKS, spending, level)
    assert crossing(LOOKS, levels) == pytest.approx(level, rel=0.02)
    assert list(levels) == pytest.approx(sorted(levels))
    for look, own in enumerate(levels):
        assert overall_level(LOOKS, spending, look, own) == pytest.approx(level, rel=0.01)


def test_the_levels_of_planned_looks_do_not_change() -> None:
    levels = (0.007952344, 0.009677174, 0.011501979, 0.012877209, 0.014330328, 0.015782707)
    assert nominal_levels((3, 5, 8, 11, 15, 20), 0.45, 0.05) == pytest.approx(levels, rel=1e-6)


def test_the_overall_level_increases_with_the_nominal_level_of_a_look() -> None:
    ones = (1e-12, 1e-6, 0.001, 0.01, 0.1, 0.5, 0.99)
    found = [overall_level(LOOKS, 0.45, 2, level) for level in ones]
    assert found == sorted(found)
    assert all(0 <= level <= 1 for level in found)
    assert all(own <= 1.01 * level for own, level in zip(ones, found, strict=True))
    assert overall_level(LOOKS, 0.45, 2, 1.0) == 1.0
