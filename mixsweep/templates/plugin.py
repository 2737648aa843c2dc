"""An example plugin: a mixing operation, a network and a dataset.

Check it with `mixsweep check plugin.py`.

Every public class that extends a base class of `mixsweep.plugins` can be named in study files.
Import torch inside functions: studies are read without it.
"""

from dataclasses import dataclass

import numpy as np

from mixsweep.plugins import Count, Dataset, DatasetInfo, Images, Model, Operation

value = dataclass(frozen=True, kw_only=True, slots=True)


@value
class Halves(Operation):
    """Mixing operation: replaces the lower rows of an image by those of its partner."""

    tag = "halves"

    least: Count = 1
    """Smallest number of rows that each of the two images contributes; 1 or more."""

    def mix(self, own, beside, lam, drawn):
        import torch

        height = own.shape[2]
        least = min(self.least, height // 2)
        rows = (lam * height).round().clamp(least, height - least)
        stays = torch.arange(height, device=own.device)[:, None] < rows[:, None, None, None]
        return torch.where(stays, own, beside), rows / height


@value
class Tiny(Model):
    """A network of one convolution, pooling and a linear layer."""

    name = "tiny"
    has_batch_norm = False

    channels: Count = 8
    """Number of output channels of the convolution."""

    def network(self, in_channels, num_classes, image_size):
        from torch import nn

        return nn.Sequential(
            nn.Conv2d(in_channels, self.channels, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(16 * self.channels, num_classes),
        )


def read(root, split, size):
    """Return the images and labels of a split of the dataset.

    Each image is noise with a bright square in one of four corners; the corner is the label.
    """
    rng = np.random.default_rng(0 if split == "train" else 1)
    labels = np.arange(400 if split == "train" else 200) % 4
    pixels = rng.integers(0, 160, (len(labels), 1, 8, 8), dtype=np.uint8)
    for image, label in zip(pixels[:, 0], labels, strict=True):
        row, column = 4 * (label // 2), 4 * (label % 2)
        image[row : row + 4, column : column + 4] += 40
    return Images.of_arrays(pixels, labels)


CORNERS = Dataset(
    name="corners",
    info=DatasetInfo(
        title="bright corners", num_train=400, num_test=200, num_classes=4, channels=1,
        image_size=8, mean=(0.35,), std=(0.2,), smallest_class=100,
    ),
    read=read,
)  # fmt: skip
