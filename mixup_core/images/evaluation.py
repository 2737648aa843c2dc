"""Evaluation: logits of a network on a split, and their error, NLL and calibration error."""

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mixup_core.images.data.datasets import Splits
from mixup_core.images.epoch import RunSettings
from mixup_core.images.forward import Precision, forward
from mixup_core.images.views import EvaluationImages
from mixup_core.predictions import Predictions, Split, images_digest

NUM_CALIBRATION_BINS = 15


def evaluate(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Return error, mean negative log-likelihood and calibration error of logits, by name."""
    # Frozen: each metric name in this file. After a change, stored results are not found or get
    # another meaning; tests/golden/test_losses.py fails.
    values = {
        "error": (logits.argmax(1) != labels).double().mean(),
        "nll": cross_entropy(logits.double(), labels),
        "calibration_error": calibration_error(logits, labels),
    }
    return dict(zip(values, torch.stack(list(values.values())).tolist(), strict=True))


@torch.no_grad()
def logits_of(network: nn.Module, images: EvaluationImages, precision: Precision) -> Tensor:
    """Return a network's logits of all images of a split, (images, classes), float32."""
    network.eval()
    return torch.cat([forward(network, images[part], precision=precision) for part in images.parts])


def corrupted_means(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the mean over all corruptions of each metric of corrupted test images."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for metric, value in metrics.items():
        split, _, name = metric.partition("/")
        if split.startswith("test_"):
            by_name[name].append(value)
    return {f"test_corrupted/{name}": fmean(values) for name, values in by_name.items()}


def calibration_error(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the expected calibration error of the predicted class, (), in [0, 1].

        sum over bins of (images in bin / images) * |accuracy in bin - mean confidence in bin|

    with 15 bins of equal width over the confidence, each open on the left and closed on the right.

    Source: Guo et al. 2017, arXiv:1706.04599, equation 3.
    """
    confidence, predicted = logits.double().softmax(1).max(1)
    correct = (predicted == labels).double()
    bins = (confidence * NUM_CALIBRATION_BINS).ceil().long().clamp(min=1) - 1
    gaps = torch.zeros(NUM_CALIBRATION_BINS, dtype=torch.float64, device=logits.device)
    gaps.index_add_(0, bins, correct - confidence)
    return gaps.abs().sum() / len(labels)


PREDICTED_SPLITS = ("val", "test")
"""Splits whose predictions are stored; those of corrupted test images are not."""


def predict(
    config: RunSettings,
    data: Splits,
    networks: Mapping[str, nn.Module],
    device: torch.device,
    known: Mapping[tuple[str, str], Tensor] = MappingProxyType({}),
) -> Predictions:
    """Return the logits of networks on validation and test images, computed unless `known`."""
    splits = {}
    for name, images in data.held_out(config.data).items():
        if name in PREDICTED_SPLITS:
            shown = None if known else EvaluationImages(images, data.info, config.data, device)
            logits = {
                suffix: known[name, suffix]
                if shown is None
                else logits_of(network, shown, config.precision)
                for suffix, network in networks.items()
            }
            labels = images.labels.numpy()
            splits[name] = Split(
                labels=labels,
                images=images_digest(images.pixels.numpy(), labels),
                logits={suffix: of_images.cpu().numpy() for suffix, of_images in logits.items()},
            )
    return Predictions(splits=splits)
