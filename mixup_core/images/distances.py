"""start, measure: distances from images to mixed images of other classes.

The problem `sufficiency` records these distances.
"""

import math
from pathlib import Path

import torch
from torch import Tensor

from mixup_core.images.batches import draw_lambdas
from mixup_core.images.data.datasets import load_once
from mixup_core.images.sufficiency import SufficiencyConfig
from mixup_core.images.views import EvaluationImages, TrainingImages
from mixup_core.mixing.linear import mix
from mixup_core.seeding import stream
from mixup_core.theory.synthetic import ArrayProcess

_ROWS = 1000
"""Number of images whose distances are in memory at once."""


def start(config: SufficiencyConfig, data_root: Path | None, device: str) -> ArrayProcess:
    """Return a run of the problem `sufficiency`, which measures distances in its only epoch."""
    place = torch.device(device)
    return ArrayProcess.of_records(config.epochs, lambda _: measure(config, data_root, place))


def measure(config: SufficiencyConfig, root: Path | None, device: torch.device) -> dict[str, float]:
    """Measure the distances of training and test images to mixed images (see `nearest`).

    A mixed image is made from two training images. It counts for an image only if neither of the
    two has the class of this image; the two may have the same class. An image for which no mixed
    image counts is left out. Distances are Euclidean, in normalised pixels.
    """
    data = config.data
    splits = load_once(data, root)
    images = TrainingImages(splits.train, splits.info, data, config.seed, device)
    num = len(images)
    pixels = images.batch(torch.arange(num, device=device), torch.ones(num, device=device))
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    rng = stream(config.seed, "mixing")
    ends = torch.from_numpy(rng.integers(num, size=(2, num))).to(device)
    lam = draw_lambdas(config.law, num, rng).to(device)
    mixed = mix(pixels[ends[0]], pixels[ends[1]], lam).flatten(1)
    classes = images.labels[ends]
    found = nearest(pixels.flatten(1), images.labels, mixed, classes)
    metrics = _of_split("train", found)
    if splits.test is not None:
        test = EvaluationImages(splits.test, splits.info, data, device)
        shown = test[slice(0, len(test))].flatten(1)
        metrics |= _of_split("test", nearest(shown, test.labels, mixed, classes))
    return metrics


def nearest(images: Tensor, labels: Tensor, mixed: Tensor, classes: Tensor) -> Tensor:
    """Return the distance of each image to the nearest mixed image made from other classes only.

    A mixed image counts only if neither of its two parts, which may have equal classes, has the
    class of the image; without one, the distance is infinite. Distances are Euclidean.
    """
    parts = []
    for part, own in zip(torch.split(images, _ROWS), torch.split(labels, _ROWS), strict=True):
        distances = torch.cdist(part, mixed)
        is_own = (classes[:, None, :] == own[None, :, None]).any(0)
        parts.append(distances.masked_fill(is_own, math.inf).amin(1))
    return torch.cat(parts)


def _of_split(split: str, distances: Tensor) -> dict[str, float]:
    finite = distances[distances.isfinite()].double()
    if not len(finite):
        return {}
    return {
        f"distance/{split}_smallest": float(finite.min()),
        f"distance/{split}_average": float(finite.mean()),
    }
