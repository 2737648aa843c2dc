from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import softmax

from reports.numbers.calibration import brier, negative_log_likelihood, reliability
from reports.numbers.ensembles import NAMES, SCALED, chosen_subsets, ensemble_sizes

Array = NDArray[np.float64]
IMAGES, CLASSES = 300, 3
TRUTH = np.random.default_rng(0)
LABELS = TRUTH.integers(CLASSES, size=IMAGES)
MEANS = 1.2 * np.eye(CLASSES)[LABELS] + 0.8 * TRUTH.normal(size=(IMAGES, CLASSES))


def network(rng: np.random.Generator) -> Array:
    chances: Array = softmax(
        (2 + 0.3 * rng.normal()) * (MEANS + 0.6 * rng.normal(size=MEANS.shape)), axis=1
    )
    return chances


def measured(chances: Array) -> Array:
    """Return error, NLL, Brier score and calibration error."""
    nll = negative_log_likelihood(np.log(chances), LABELS, 1.0)
    error = np.mean(chances.argmax(1) != LABELS)
    return np.array([error, nll, brier(chances, LABELS), reliability(chances, LABELS).error])


@pytest.fixture(scope="module")
def chances() -> dict[int, Array]:
    rng = np.random.default_rng(1)
    return {10 * seed: network(rng) for seed in range(5)}


def test_measures_of_each_ensemble_size_are_means_over_all_ensembles(
    chances: dict[int, Array],
) -> None:
    sizes = ensemble_sizes(chances, LABELS)
    assert [*sizes] == [1, 2, 3, 5]
    for size, found in sizes.items():
        chosen = list(combinations(chances, size))
        assert (found.num_ensembles, found.is_complete) == (len(chosen), True)
        expected = np.mean(
            [measured(np.mean([chances[s] for s in own], axis=0)) for own in chosen], axis=0
        )
        assert [found.measures[name].mean for name in NAMES] == pytest.approx(expected.tolist())
        assert not {*SCALED} & {*found.measures}
        for measure in found.measures.values():
            assert np.mean([*measure.by_seed.values()]) == pytest.approx(measure.mean)


@pytest.mark.parametrize(("size", "without_one"), [(2, 2), (5, 4)])
def test_intervals_over_networks_are_leave_one_out_intervals(
    size: int, without_one: int, chances: dict[int, Array]
) -> None:
    found = ensemble_sizes(chances, LABELS)[size].measures["nll"]

    def over_subsets(seeds: list[int]) -> float:
        chosen = combinations(seeds, without_one)
        return float(np.mean([measured(np.mean([chances[s] for s in c], 0))[1] for c in chosen]))

    without = np.array([over_subsets([s for s in chances if s != left]) for left in chances])
    half = 2.776445 * np.sqrt(4 / 5 * np.sum((without - without.mean()) ** 2))
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half))


def test_intervals_over_images_are_close_to_normal_intervals(
    chances: dict[int, Array],
) -> None:
    found = ensemble_sizes(chances, LABELS)[5].measures["error"]
    wrong = np.mean([*chances.values()], axis=0).argmax(1) != LABELS
    half = 1.959964 * wrong.std(ddof=1) / np.sqrt(IMAGES)
    assert found.image_high - found.mean == pytest.approx(half, rel=0.3)


def test_one_temperature_is_fitted_to_each_ensemble(chances: dict[int, Array]) -> None:
    blunt = {seed: softmax(np.log(own) / 3, axis=1) for seed, own in chances.items()}
    found = ensemble_sizes(blunt, LABELS, (blunt, LABELS))[1].measures
    sharp = ensemble_sizes(chances, LABELS, (chances, LABELS))[1].measures
    assert found["scaled_nll"].mean == pytest.approx(sharp["scaled_nll"].mean, rel=1e-6)
    assert found["scaled_nll"].mean < found["nll"].mean


@pytest.mark.parametrize("size", [2, 5, 10, 20])
def test_each_network_is_in_equally_many_chosen_subsets(size: int) -> None:
    chosen = chosen_subsets(40, size, 160)
    counts = np.bincount(np.concatenate(chosen), minlength=40)
    assert len(chosen) == 160
    assert set(counts) == {4 * size}
    assert chosen == chosen_subsets(40, size, 160)


def test_the_drawn_subsets_of_published_tables_do_not_change() -> None:
    assert chosen_subsets(40, 2, 160)[:3] == ((20, 38), (20, 32), (4, 32))
