import numpy as np
import pytest

from reports.numbers.effects import detectable_difference
from reports.numbers.power import found_by_looks, seeds_to_find
from sweeps.study.claims import UntilDecided


@pytest.mark.parametrize("tests", [1, 5])
@pytest.mark.parametrize("n", [3, 5, 16, 200])
def test_seeds_to_find_is_the_inverse_of_the_detectable_difference(n: int, tests: int) -> None:
    assert seeds_to_find(detectable_difference(n, tests) * 1.0001, tests) == n


def test_a_value_between_two_limits_is_shown_in_80_percent_of_studies() -> None:
    n = seeds_to_find(0.7, is_between=True)
    assert n is not None
    drawn = np.random.default_rng(0).standard_normal((20_000, n))
    critical = {21: 2.086, 22: 2.080, 23: 2.074, 24: 2.069}[n]
    reach = np.abs(drawn.mean(1)) + critical * drawn.std(1, ddof=1) / n**0.5
    assert 0.79 <= (reach < 0.7).mean() <= 0.84


def test_looks_have_slightly_more_power_than_a_fixed_design_of_the_last_look() -> None:
    until = UntilDecided(at_most=20, until="decided")
    fixed = detectable_difference(20)
    assert fixed < found_by_looks(until, 1) < 1.3 * fixed
    assert found_by_looks(until, 3) > found_by_looks(until, 1)
