import numpy as np
import pytest

from reports.numbers.spread import sd_interval, share_interval, split_spread


def test_intervals_of_spread_and_share_cover_the_truth_in_95_percent_of_studies() -> None:
    rng = np.random.default_rng(0)
    in_sd = in_share = 0
    for _ in range(4000):
        first, second = (float(np.std(rng.normal(size=6), ddof=1)) for _ in range(2))
        low, high = sd_interval(first, 6)
        in_sd += low <= 1 <= high
        low, high = share_interval((first / second) ** 2, 6, 6)
        in_share += low <= 1 <= high
    assert in_sd / 4000 == pytest.approx(0.95, abs=0.012)
    assert in_share / 4000 == pytest.approx(0.95, abs=0.012)


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
