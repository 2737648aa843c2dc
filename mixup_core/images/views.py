"""How the network sees raw images: normalised, pooled and, if asked, two views concatenated.

The multi-view benchmark of Chidambaram et al. 2023 (arXiv:2210.13512, section 5) pairs the classes
and shows each training image beside a fixed image of the paired class, so that a network may learn
either. Validation and test images stand alone: their second view is zero in normalised space.
"""

import torch
from torch import Tensor

from mixup_core.images.config import DataConfig
from mixup_core.images.data.catalog import DatasetInfo
from mixup_core.images.data.datasets import Images
from mixup_core.seeding import stream


def pair_classes(num_classes: int, seed: int) -> Tensor:
    """Return the class whose images share views with each class: a pairing without fixed point.

    Args:
        num_classes: An even number.
        seed: Seed of the run; the pairing is drawn once per run.

    Returns:
        (classes,), int64; applying it twice is the identity.

    Raises:
        ValueError: If the number of classes is odd.
    """
    if num_classes % 2:
        raise ValueError(f"`an even number of classes is paired` must hold, got ({num_classes=}).")
    shuffled = torch.from_numpy(stream(seed, "class pairing").permutation(num_classes))
    paired = torch.empty_like(shuffled)
    paired[shuffled[0::2]] = shuffled[1::2]
    paired[shuffled[1::2]] = shuffled[0::2]
    return paired


def draw_view_partners(labels: Tensor, paired: Tensor, seed: int) -> Tensor:
    """Return, for each training image, the image of the paired class shown beside it.

    Drawn once per run, uniformly, and never again.

    Args:
        labels: (images,), int64.
        paired: (classes,), int64, from `pair_classes`.
        seed: Seed of the run.

    Returns:
        (images,), int64, indices into the same images.

    Raises:
        ValueError: If a paired class has no image to draw.
    """
    counts = torch.bincount(labels, minlength=len(paired))
    if not counts.all():
        empty = torch.nonzero(counts == 0).flatten().tolist()
        raise ValueError(
            f"`every class has a training image` must hold, got (without images={empty})."
        )
    by_class = torch.argsort(labels, stable=True)
    first = counts.cumsum(0) - counts
    wanted = paired[labels]
    position = torch.from_numpy(stream(seed, "view partners").random(len(labels)))
    return by_class[first[wanted] + (position * counts[wanted]).long()]


class NormalisedPixels:
    """Images on a device as integers, turned into normalised, pooled floats batch by batch."""

    def __init__(self, images: Images, info: DatasetInfo, pool: int, device: torch.device) -> None:
        """Move the images to the device; pooled ones are kept as sums of their pixels.

        Args:
            images: Raw images, uint8.
            info: Mean and standard deviation per channel, of pixels in [0, 1].
            pool: Side of the square of pixels averaged into one; it divides height and width.
            device: Where batches are made.
        """
        pixels = images.pixels
        if pool > 1:
            num, channels, height, width = pixels.shape
            squares = pixels.reshape(num, channels, height // pool, pool, width // pool, pool)
            pixels = squares.sum((3, 5), dtype=torch.int32)
        std = torch.tensor(info.std).view(-1, 1, 1)
        self._pixels = pixels.to(device)
        self._scale = (1 / (255 * pool**2 * std)).to(device)
        self._shift = (-torch.tensor(info.mean).view(-1, 1, 1) / std).to(device)

    def __getitem__(self, indices: Tensor | slice) -> Tensor:
        """Return (batch, channels, height, width), float32; zero is the mean pixel."""
        return torch.addcmul(self._shift, self._pixels[indices].float(), self._scale)


class TrainingImages:
    """The training images of one run: its subset, its views, its labels, on a device."""

    def __init__(
        self, images: Images, info: DatasetInfo, data: DataConfig, seed: int, device: torch.device
    ) -> None:
        """Draw the subset and, for concatenated views, the class pairing and view partners.

        Raises:
            ValueError: If the subset is larger than the images at hand, or classes cannot be
                paired.
        """
        chosen = _subset(images, data.num_train, seed)
        self._pixels = NormalisedPixels(chosen, info, data.pool, device)
        self._view_partners = None
        if data.views == "concat":
            paired = pair_classes(info.num_classes, seed)
            self._view_partners = draw_view_partners(chosen.labels, paired, seed).to(device)
        self.labels = chosen.labels.to(device)
        """(images,), int64."""

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Tensor, scaling: Tensor) -> Tensor:
        """Return the images as one access shows them.

        With concatenated views this is `concat([gamma x, (1 - gamma) x'])` over channels, x' the
        fixed view partner of x; gamma scales normalised pixels, so gamma = 0 is the mean pixel.

        Args:
            indices: (batch,), int64.
            scaling: gamma of each image, (batch,), in [0, 1); unused for single views.

        Returns:
            (batch, channels or 2 channels, height, width), float32.
        """
        own = self._pixels[indices]
        if self._view_partners is None:
            return own
        gamma = scaling.view(-1, 1, 1, 1)
        beside = self._pixels[self._view_partners[indices]]
        return torch.cat([gamma * own, (1 - gamma) * beside], dim=1)


class EvaluationImages:
    """Validation or test images of one run on a device; concatenated with a zero second view."""

    def __init__(
        self, images: Images, info: DatasetInfo, data: DataConfig, device: torch.device
    ) -> None:
        """Move the images to the device."""
        self._pixels = NormalisedPixels(images, info, data.pool, device)
        self._concat = data.views == "concat"
        self.labels = images.labels.to(device)
        """(images,), int64."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: slice) -> Tensor:
        """Return images at full scale: (batch, channels or 2 channels, height, width), float32."""
        own = self._pixels[chosen]
        return torch.cat([own, torch.zeros_like(own)], dim=1) if self._concat else own


def _subset(images: Images, num_train: int | None, seed: int) -> Images:
    if num_train is None:
        return images
    if num_train > len(images):
        raise ValueError(
            "`data.num_train <= training images` must hold, "
            f"got ({num_train=}, training images={len(images)})."
        )
    order = stream(seed, "training subset").permutation(len(images))
    chosen = torch.from_numpy(order[:num_train])
    return Images(pixels=images.pixels[chosen], labels=images.labels[chosen])
