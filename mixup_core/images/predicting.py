"""predict: computes a run's final logits on validation and test images."""

from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import Tensor, nn

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.evaluation import logits_of
from mixup_core.images.views import EvaluationImages
from mixup_core.predictions import Predictions, Split, images_digest

PREDICTED_SPLITS = ("val", "test")
"""Splits whose predictions are stored; those of corrupted test images are not."""


def predict(
    config: TrainConfig,
    data: Splits,
    networks: Mapping[str, nn.Module],
    device: torch.device,
    known: Mapping[str, Mapping[str, Tensor]] = MappingProxyType({}),
) -> Predictions:
    """Return the logits of networks on the validation and test images of a run."""
    splits = {}
    for name, images in data.held_out(config.data).items():
        if name not in PREDICTED_SPLITS:
            continue
        logits = known.get(name)
        if logits is None:
            shown = EvaluationImages(images, data.info, config.data, device)
            logits = {
                suffix: logits_of(network, shown, config.precision)
                for suffix, network in networks.items()
            }
        labels = images.labels.numpy()
        digest = images_digest(images.pixels.numpy(), labels)
        splits[name] = Split(
            labels=labels,
            images=digest,
            logits={suffix: of_images.cpu().numpy() for suffix, of_images in logits.items()},
        )
    return Predictions(splits=splits)
