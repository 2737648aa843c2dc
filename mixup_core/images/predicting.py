"""predict: the logits of the validation and test images that a run ends with."""

from collections.abc import Mapping

import torch
from torch import nn

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.evaluation import logits_of
from mixup_core.images.views import EvaluationImages
from mixup_core.predictions import Predictions, Split, images_digest

PREDICTED = ("val", "test")
"""Splits that are predicted; corrupted test images are measured alone."""


def predict(
    config: TrainConfig, data: Splits, networks: Mapping[str, nn.Module], device: torch.device
) -> Predictions:
    """Return the logits of some networks on the images that a run is measured on.

    Args:
        config: The run.
        data: Its images.
        networks: By what stands behind their metrics' names (`TrainingState.networks`).
        device: Where they are.
    """
    splits = {}
    for name, images in data.held_out().items():
        if name not in PREDICTED:
            continue
        shown = EvaluationImages(images, data.info, config.data, device)
        logits = {
            suffix: logits_of(network, shown, config.precision).cpu().numpy()
            for suffix, network in networks.items()
        }
        labels = images.labels.numpy()
        digest = images_digest(images.pixels.numpy(), labels)
        splits[name] = Split(labels=labels, images=digest, logits=logits)
    return Predictions(splits=splits)
