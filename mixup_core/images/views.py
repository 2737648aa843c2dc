"""Prepare raw images for the network: normalised, pooled and, if asked, two views concatenated.

The multi-view benchmark of Chidambaram et al. 2023 (arXiv:2210.13512, section 5) pairs the classes
and shows each training image beside a fixed image of the paired class, so that a network may learn
either. Validation and test images stand alone: their second view is zero in normalised space. Its
controls add the second view instead, or take one random image for each class as second view.
"""

import torch
from torch import Tensor

from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.data.catalog import DatasetInfo
from mixup_core.images.data.datasets import Images
from mixup_core.images.data.draws import draw_noise, draw_subset
from mixup_core.images.data_config import DataConfig
from mixup_core.images.evaluation_size import images_per_batch
from mixup_core.seeding import Seeds, stream


def pair_classes(num_classes: int, seed: int | Seeds) -> Tensor:
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
        raise ValueError(f"class pairing needs an even number of classes, got ({num_classes=}).")
    shuffled = torch.from_numpy(stream(seed, "class pairing").permutation(num_classes))
    paired = torch.empty_like(shuffled)
    paired[shuffled[0::2]] = shuffled[1::2]
    paired[shuffled[1::2]] = shuffled[0::2]
    return paired


def draw_view_partners(labels: Tensor, paired: Tensor, seed: int | Seeds) -> Tensor:
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
        raise ValueError(f"every class needs a training image, got (without images={empty}).")
    by_class = torch.argsort(labels, stable=True)
    first = counts.cumsum(0) - counts
    wanted = paired[labels]
    position = torch.from_numpy(stream(seed, "view partners").random(len(labels)))
    return by_class[first[wanted] + (position * counts[wanted]).long()]


def draw_class_views(num_classes: int, shape: torch.Size, seed: int | Seeds) -> Tensor:
    """Return a random image for each class, all orthogonal, of mean square 1 per pixel.

    Args:
        num_classes: At most the number of pixels.
        shape: Channels, height and width.
        seed: Seed of the run; the images are drawn once per run.

    Returns:
        (classes, channels, height, width), float32.

    Raises:
        ValueError: If there are more classes than pixels.
    """
    pixels = shape.numel()
    if num_classes > pixels:
        raise ValueError(
            f"orthogonal views need a pixel per class, got ({num_classes=}, {pixels=})"
        )
    drawn = torch.from_numpy(stream(seed, "view partners").normal(size=(pixels, num_classes)))
    basis, _ = torch.linalg.qr(drawn)
    views: Tensor = (basis.T * pixels**0.5).float().reshape(num_classes, *shape)
    return views


class NormalisedPixels:
    """Images on a device as integers, turned into normalised, pooled floats batch by batch."""

    def __init__(
        self,
        images: Images,
        info: DatasetInfo,
        pool: int,
        device: torch.device,
        chosen: Tensor | None = None,
    ) -> None:
        """Move the images to the device; on a CPU those that come pooled are not copied.

        Args:
            images: As integers, pooled already or not.
            info: Mean and standard deviation per channel, of pixels in [0, 1].
            pool: Side of the square of pixels averaged into one; it divides height and width.
            device: Where batches are made.
            chosen: (images,), int64, the images that indices count; None: all, in their order.
        """
        pixels = images.pooled(pool).pixels
        if chosen is not None and device.type != "cpu":  # the others need no room there
            pixels, chosen = pixels[chosen], None
        self.values = pixels.to(device)
        """(all images, channels, height, width), of an integer type."""
        self.chosen = None if chosen is None else chosen.int()
        """(images,), int32, those of the values that indices count; None: all."""
        std = torch.tensor(info.std).view(-1, 1, 1)
        mean = torch.tensor(info.mean).view(-1, 1, 1)
        # One value for each pixel of an image: PyTorch's kernels are slow to repeat those of a
        # channel.
        self.scale, self.shift = (
            part.expand(pixels.shape[1:]).contiguous().to(device)
            for part in (1 / (255 * pool**2 * std), -mean / std)
        )

    @property
    def shape(self) -> torch.Size:
        """Channels, height and width of an image."""
        return self.values.shape[1:]

    def __getitem__(self, indices: Tensor | slice) -> Tensor:
        """Return (batch, channels, height, width), float32; zero is the mean pixel."""
        return self._normalised(self._raw(indices))

    def augmented(self, indices: Tensor, drawn: Tensor, augmentation: Augmentation) -> Tensor:
        """Return images as an augmentation shows them.

        Args:
            indices: (batch,), int64.
            drawn: (batch, numbers), from `augmentation.draw`.
            augmentation: What is done to them.

        Returns:
            (batch, channels, height, width), float32.
        """
        pixels = augmentation.on_pixels(self._raw(indices), drawn)
        return augmentation.on_images(self._normalised(pixels), drawn)

    def _raw(self, indices: Tensor | slice) -> Tensor:
        if self.chosen is not None:
            indices = self.chosen[indices]
        if isinstance(indices, slice):
            return self.values[indices]
        return self.values.index_select(0, indices)  # image by image; [] copies value by value

    def _normalised(self, raw: Tensor) -> Tensor:
        floats = raw.float()
        return torch.addcmul(self.shift, floats, self.scale, out=floats)


class TrainingImages:
    """The training images of one run: its subset, its views, its labels, on a device."""

    def __init__(
        self,
        images: Images,
        info: DatasetInfo,
        data: DataConfig,
        seed: int | Seeds,
        device: torch.device,
    ) -> None:
        """Draw the subset and, for concatenated views, the class pairing and view partners.

        Raises:
            ValueError: If the subset is larger than the images at hand, or classes cannot be
                paired.
        """
        drawn = draw_subset(images.labels.numpy(), info.num_classes, data, seed)
        chosen = None if drawn is None else torch.from_numpy(drawn)
        labels = images.labels if chosen is None else images.labels[chosen]
        self.pixels = NormalisedPixels(images, info, data.pool, device, chosen)
        """Pixels of one view."""
        self.view_partners: Tensor | None = None
        """(images,), int32, the fixed image beside each; None for single views."""
        self.views = data.views
        """Input made of an image and its second view."""
        self.class_views: Tensor | None = None
        """(classes, channels, height, width), the second view of each class if it is random."""
        if data.views == "orthogonal":
            drawn_views = draw_class_views(info.num_classes, self.pixels.shape, seed)
            self.class_views = drawn_views.to(device)
        self.right_labels = labels.to(device)
        """(images,), int64, before label noise."""
        if data.pairs_classes:
            paired = pair_classes(info.num_classes, seed)
            self.view_partners = draw_view_partners(labels, paired, seed).int().to(device)
        noisy = draw_noise(labels.numpy(), info.num_classes, data, seed)
        self.labels = torch.from_numpy(noisy).to(device)
        """(images,), int64; with `data.label_noise` not always the right ones."""
        self.augmentation: Augmentation = data.augment
        """Augmentation of an image at each access that has draws for it."""
        self._stacked = data.num_stacked

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, of both views if there are two, height and width."""
        channels, height, width = self.pixels.shape
        return (channels * self._stacked, height, width)

    def unaugmented(self, indices: Tensor) -> Tensor:
        """Return the own view of images, (images, channels, height, width), float32."""
        return self.pixels[indices.to(self.labels.device, non_blocking=True)]

    def batch(
        self,
        indices: Tensor,
        scaling: Tensor,
        augmentation: Tensor | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the images as one access shows them.

        With concatenated views this is `concat([gamma x, (1 - gamma) x'])` over channels, x' the
        fixed view partner of x; gamma scales normalised pixels, so gamma = 0 is the mean pixel.

        Args:
            indices: (batch,), int64.
            scaling: gamma of each image, (batch,), in [0, 1); unused for single views.
            augmentation: What `Augmentation.draw` has drawn for each image, the same for both
                views, (batch, numbers); None: as they are.
            out: Where they are written, if anywhere.

        Returns:
            (batch, channels or 2 channels, height, width), float32.
        """
        own_scale = scaling.view(-1, 1, 1, 1)
        if self.class_views is not None:
            beside = self.class_views[self.right_labels[indices]] * (1 - own_scale)
            both = torch.cat([self._seen(indices, augmentation) * own_scale, beside], dim=1)
            return both if out is None else out.copy_(both)
        if self.view_partners is None:
            own = self._seen(indices, augmentation)
            return own if out is None else out.copy_(own)
        if self.views == "added":
            own = self._seen(indices, augmentation) * own_scale
            beside = self._seen(self.view_partners[indices].long(), augmentation)
            return torch.add(own, beside * (1 - own_scale), out=out)
        # Image and view partner in turn: side by side they are one image of twice the channels.
        pairs = torch.stack([indices, self.view_partners[indices].long()], dim=1)
        if augmentation is not None:
            augmentation = augmentation.repeat_interleave(2, dim=0)
        views = self._seen(pairs.flatten(), augmentation).view(*pairs.shape, -1)
        gamma = torch.stack([scaling, 1 - scaling], dim=1).unsqueeze(2)
        if out is None:
            out = torch.empty(len(indices), *self.shape, device=indices.device)
        torch.mul(views, gamma, out=out.view(views.shape))
        return out

    def _seen(self, indices: Tensor, drawn: Tensor | None) -> Tensor:
        if drawn is None:
            return self.pixels[indices]
        return self.pixels.augmented(indices, drawn, self.augmentation)


class EvaluationImages:
    """Validation or test images of one run on a device; concatenated with a zero second view."""

    def __init__(
        self, images: Images, info: DatasetInfo, data: DataConfig, device: torch.device
    ) -> None:
        """Move the images to the device."""
        self._pixels = NormalisedPixels(images, info, data.pool, device)
        self._concat = data.num_stacked == 2
        self.labels = images.labels.to(device)
        """(images,), int64."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def parts(self) -> list[slice]:
        """The images in parts that are looked at together."""
        step = images_per_batch(self._pixels.shape[1:].numel())
        return [slice(start, start + step) for start in range(0, len(self), step)]

    def __getitem__(self, chosen: slice) -> Tensor:
        """Return images at full scale: (batch, channels or 2 channels, height, width), float32."""
        own = self._pixels[chosen]
        return torch.cat([own, torch.zeros_like(own)], dim=1) if self._concat else own
