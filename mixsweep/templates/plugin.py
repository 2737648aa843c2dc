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
        """Return the mixed images, and for each the weight of the label of `own`.

        Args:
            own: Images, (batch, channels, height, width).
            beside: The image that is mixed into each of them (its partner), same shape.
            lam: Mixing weights in [0, 1], (batch,): the share of rows to keep from `own`.
            drawn: Further random numbers; this operation needs none.
        """
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
        """Return a new network, with PyTorch's default initial weights.

        Args:
            in_channels: Channels of the images.
            num_classes: Number of classes, the length of the output.
            image_size: Side of the images in pixels; this network accepts any size.
        """
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

    Args:
        root: Folder of downloaded datasets; not used, because these images are generated.
        split: `train` or `test`.
        size: Side of the images in pixels; not used, because all images have 8 x 8 pixels.
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
