"""Calibration: how well confidence matches accuracy, before and after temperature scaling.

Shapes: B images, C classes. Logits are floats, labels int64.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

# Frozen: published calibration errors are of this many bins;
# tests/reports/numbers/test_calibration.py fails.
NUM_BINS = 15
"""Number of confidence bins. They have equal width; each excludes its left and includes its right
end.
"""

_LOG_TEMPERATURES = (-5.0, 5.0)

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Reliability:
    """Test images of a run, counted in bins of the confidence in the predicted class."""

    count: Array
    confidence: Array
    """Sum of the confidences of the images in the bin."""
    correct: Array
    variance: Array
    """Sum over the images in the bin of c (1 - c), with the confidence c."""

    @property
    def error(self) -> float:
        """The expected calibration error, not the error of classification, in [0, 1].

            sum over bins of (images in bin / images) |accuracy in bin - mean confidence in bin|

        Source: Guo et al. 2017, arXiv:1706.04599, equation 3.
        """
        return float(np.abs(self.correct - self.confidence).sum() / self.count.sum())

    @property
    def floor(self) -> float:
        """The expected `error` of a perfectly calibrated network with the same confidences.

        In a bin with variance v, the number of correct images is off by sqrt(2 v / pi) on average
        (normal approximation), and by at most 2 v.
        """
        off = np.minimum(np.sqrt(2 * self.variance / np.pi), 2 * self.variance)
        return float(off.sum() / self.count.sum())


def probabilities(logits: NDArray[np.floating], temperature: float = 1.0) -> Array:
    """Return the softmax of logits divided by a temperature: class probabilities, (B, C)."""
    scaled = logits.astype(np.float64) / temperature
    scaled -= scaled.max(1, keepdims=True)
    np.exp(scaled, out=scaled)
    scaled /= scaled.sum(1, keepdims=True)
    return scaled


def negative_log_likelihood(
    logits: NDArray[np.floating], labels: Labels, temperature: float
) -> float:
    """Return the mean cross entropy, in nats, of logits that are divided by a temperature."""
    scaled = logits.astype(np.float64) / temperature
    own = scaled[np.arange(len(labels)), labels]
    return float((logsumexp(scaled, axis=1) - own).mean())


def fitted_temperature(logits: NDArray[np.floating], labels: Labels) -> float:
    """Return the temperature with the lowest negative log-likelihood, in [exp(-5), exp(5)].

    The log-likelihood is concave in 1 / temperature, so the optimum is unique. If every image is
    classified correctly, the result is exp(-5), the lowest temperature.

    Source: Guo et al. 2017, arXiv:1706.04599, section 4.2.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and few reports need it

    precise = logits.astype(np.float64)
    found = minimize_scalar(
        lambda log: negative_log_likelihood(precise, labels, float(np.exp(log))),
        bounds=_LOG_TEMPERATURES,
        method="bounded",
        options={"xatol": 1e-4},
    )
    return float(np.exp(found.x))


def reliability(chances: Array, labels: Labels) -> Reliability:
    """Return, by confidence bin, the number of images, summed confidence and correct predictions.

    Args:
        chances: Predicted probabilities, (B, C).
        labels: (B,), each in [0, C).
    """
    predicted = chances.argmax(1)
    confidence = chances[np.arange(len(predicted)), predicted]
    bins = confidence_bins(confidence)
    of_images = (
        None,
        confidence,
        (predicted == labels).astype(np.float64),
        confidence * (1 - confidence),
    )
    count, sums, correct, variance = (
        np.bincount(bins, weights=weights, minlength=NUM_BINS).astype(np.float64)
        for weights in of_images
    )
    return Reliability(count=count, confidence=sums, correct=correct, variance=variance)


def confidence_bins(confidence: Array) -> Labels:
    """Return the number of the bin of each confidence, from 0 to `NUM_BINS` - 1."""
    bins: Labels = np.clip(np.ceil(confidence * NUM_BINS).astype(np.int64) - 1, 0, NUM_BINS - 1)
    return bins


def brier(chances: Array, labels: Labels) -> float:
    """Return the Brier score: mean squared distance of probabilities from the label, in [0, 2].

        mean over images of the sum over classes of (p - [class is the label])^2

    Source: Brier 1950, Verification of forecasts expressed in terms of probability.
    """
    squared = np.square(chances).sum(1)
    own = chances[np.arange(len(labels)), labels]
    return float((squared - 2 * own + 1).mean())
