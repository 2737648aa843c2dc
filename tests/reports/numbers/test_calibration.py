import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.special import softmax
from torchmetrics.functional.classification import multiclass_calibration_error

from reports.numbers.calibration import (
    brier,
    confidence_bins,
    fitted_temperature,
    negative_log_likelihood,
    probabilities,
    reliability,
)

RNG = np.random.default_rng(3)
LOGITS = RNG.normal(size=(4000, 6)).astype(np.float32) * 2
LABELS = np.array([RNG.choice(6, p=row) for row in softmax(LOGITS.astype(float) / 1.7, axis=1)])


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_the_calibration_error_agrees_with_torchmetrics(temperature: float) -> None:
    chances = probabilities(LOGITS, temperature)
    np.testing.assert_allclose(chances, softmax(LOGITS.astype(float) / temperature, axis=1))
    np.testing.assert_array_equal(chances, probabilities(LOGITS / np.float64(temperature)))
    nll = -np.log(chances[np.arange(len(LABELS)), LABELS]).mean()
    assert negative_log_likelihood(LOGITS, LABELS, temperature) == pytest.approx(nll)
    reference = multiclass_calibration_error(
        torch.from_numpy(chances), torch.from_numpy(LABELS), num_classes=6, n_bins=15, norm="l1"
    )
    assert reliability(chances, LABELS).error == pytest.approx(float(reference), abs=1e-5)


def test_bins_are_closed_on_the_right_and_contain_every_image() -> None:
    chances = np.array([[1.0, 0.0], [0.6, 0.4], [0.5, 0.5]])
    found = reliability(chances, np.array([0, 1, 0]))
    assert found.count.tolist() == [0] * 7 + [1, 1] + [0] * 5 + [1]
    assert found.correct.tolist() == [0] * 7 + [1, 0] + [0] * 5 + [1]
    assert found.error == pytest.approx((0.5 + 0.6) / 3)
    assert confidence_bins(np.array([0.0, 1.0, 1.0 + 1e-9])).tolist() == [0, 14, 14]
    alone = reliability(np.array([[0.9, 0.1]]), np.array([0]))
    assert alone.floor == pytest.approx(0.9 * 0.1 + 0.1 * 0.9), "the mean of |correct - confidence|"


def test_the_temperature_minimises_the_negative_log_likelihood() -> None:
    def slope(inverse: float) -> float:
        chances = softmax(LOGITS.astype(float) * inverse, axis=1)
        own = LOGITS[np.arange(len(LABELS)), LABELS]
        return float(((chances * LOGITS).sum(1) - own).mean())

    reference = 1 / brentq(slope, 0.05, 20)
    found = fitted_temperature(LOGITS, LABELS)
    assert found == pytest.approx(reference, rel=1e-3)
    assert found == pytest.approx(1.7, rel=0.1), "the labels were drawn at that temperature"
    assert reliability(probabilities(LOGITS, found), LABELS).error < 0.03
    for right, limit in ((LOGITS.argmax(1), -5), (LOGITS.argmin(1), 5)):
        assert np.log(fitted_temperature(LOGITS, right)) == pytest.approx(limit, abs=1e-3)


def test_brier_score_is_the_mean_squared_distance_from_the_label() -> None:
    chances = probabilities(LOGITS)
    distances = [
        sum((p - (c == label)) ** 2 for c, p in enumerate(row))
        for row, label in zip(chances, LABELS, strict=True)
    ]
    assert brier(chances, LABELS) == pytest.approx(np.mean(distances))
    assert brier(np.eye(6)[LABELS], LABELS) == pytest.approx(0)


@pytest.mark.parametrize("images", [40, 360, 10_000])
def test_the_floor_is_the_mean_error_of_calibrated_networks(images: int) -> None:
    rng = np.random.default_rng(images)
    first = rng.beta(8, 1, images) / 2 + 0.5
    chances = np.stack([first, 1 - first], axis=1)
    simulated = [
        reliability(chances, (rng.random(images) > first).astype(np.int64)) for _ in range(300)
    ]
    mean = np.mean([found.error for found in simulated])
    assert simulated[0].floor == pytest.approx(mean, rel=0.12)
