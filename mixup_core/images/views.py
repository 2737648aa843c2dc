"""Views: images prepared for the network, normalised, pooled, and with a second view if configured.

The multi-view benchmark of Chidambaram et al. 2023 (arXiv:2210.13512, section 5) pairs the classes
and concatenates each training image with a fixed image of the paired class, so that a network can
learn either. The second view of validation and test images is zero in normalised space. As
controls, views are added pixel by pixel, or the second view is one random image per class.
"""

import torch
from torch import Tensor

from mixup_core.contracts import ContractError
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Images
from mixup_core.images.data.draws import draw_noise, draw_subset
from mixup_core.images.data.facts import DatasetInfo, images_per_batch
from mixup_core.seeding import Seeds, stream


def pair_classes(num_classes: int, seed: int | Seeds) -> Tensor:
    """Pair the classes at random; return the paired class of each, which is never itself."""
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    shuffled = torch.from_numpy(stream(seed, "class pairing").permutation(num_classes))
    paired = torch.empty_like(shuffled)
    paired[shuffled[0::2]] = shuffled[1::2]
    paired[shuffled[1::2]] = shuffled[0::2]
    return paired


def draw_view_partners(labels: Tensor, paired: Tensor, seed: int | Seeds) -> Tensor:
    """Draw the second view of each training image: a fixed image of the paired class."""
    counts = torch.bincount(labels, minlength=len(paired))
    if not counts.all():
        empty = torch.nonzero(counts == 0).flatten().tolist()
        raise ValueError(f"every class needs a training image, got (without images: {empty}).")
    by_class = torch.argsort(labels, stable=True)
    first = counts.cumsum(0) - counts
    wanted = paired[labels]
    position = torch.from_numpy(stream(seed, "view partners").random(len(labels)))
    return by_class[first[wanted] + (position * counts[wanted]).long()]


def draw_class_views(num_classes: int, shape: torch.Size, seed: int | Seeds) -> Tensor:
    """Draw one random image per class: the second view of all training images of the class."""
    pixels = shape.numel()
    drawn = torch.from_numpy(stream(seed, "view partners").normal(size=(pixels, num_classes)))
    basis, _ = torch.linalg.qr(drawn)
    views: Tensor = (basis.T * pixels**0.5).float().reshape(num_classes, *shape)
    return views


class NormalisedPixels:
    """Integer images on a device, pooled if configured; batches are normalised on access."""

    def __init__(
        self,
        images: Images,
        info: DatasetInfo,
        pool: int,
        device: torch.device,
        chosen: Tensor | None = None,
    ) -> None:
        """Pool the images and move them to the device. On a CPU, pooled images are not copied."""
        pixels = images.pooled(pool).pixels
        if chosen is not None and device.type != "cpu":  # move only the images to use
            pixels, chosen = pixels[chosen], None
        self.values = pixels.to(device)
        """(all images, channels, height, width), integer."""
        self.chosen = None if chosen is None else chosen.int()
        """Indices of the images to use, (images,), int32; None: all."""
        std = torch.tensor(info.std).view(-1, 1, 1)
        mean = torch.tensor(info.mean).view(-1, 1, 1)
        # One value for each pixel, not for each channel: PyTorch's kernels are slow at broadcasting
        # over the pixels of a channel.
        self.scale, self.shift = (
            part.expand(pixels.shape[1:]).contiguous().to(device)
            for part in (1 / (255 * pool**2 * std), -mean / std)
        )

    @property
    def shape(self) -> torch.Size:
        """Channels, height and width of an image."""
        return self.values.shape[1:]

    def __getitem__(self, indices: Tensor | slice) -> Tensor:
        """Return normalised images, (batch, channels, height, width), float32; 0 is the mean."""
        return self._normalised(self._raw(indices))

    def augmented(self, indices: Tensor, drawn: Tensor, augmentation: Augmentation) -> Tensor:
        """Return normalised images after an augmentation."""
        pixels = augmentation.on_pixels(self._raw(indices), drawn)
        return augmentation.on_images(self._normalised(pixels), drawn)

    def _raw(self, indices: Tensor | slice) -> Tensor:
        if self.chosen is not None:
            indices = self.chosen[indices]
        if isinstance(indices, slice):
            return self.values[indices]
        return self.values.index_select(0, indices)  # image by image; [] copies value by value

    def _normalised(self, raw: Tensor) -> Tensor:
        # Frozen: order of these floating-point operations. After a change, the last bits of new
        # runs differ from stored runs of the same key; `make same-bits BASE=main` fails.
        floats = raw.float()
        return torch.addcmul(self.shift, floats, self.scale, out=floats)


class TrainingImages:
    """The training images that one run uses, on a device, with their labels and second views."""

    def __init__(
        self,
        images: Images,
        info: DatasetInfo,
        data: DataConfig,
        seed: int | Seeds,
        device: torch.device,
    ) -> None:
        """Draw the run's subset of the images, the label noise and the second views."""
        for reason in data.unfit_views(info):
            raise reason
        drawn = draw_subset(images.labels.numpy(), info.num_classes, data, seed)
        chosen = None if drawn is None else torch.from_numpy(drawn)
        labels = images.labels if chosen is None else images.labels[chosen]
        self.is_test: Tensor | None = None
        """True for test images, (images,), bool; None if there are none."""
        if images.num_test:
            drawn_from_test = torch.arange(len(images)) >= len(images) - images.num_test
            own = drawn_from_test if chosen is None else drawn_from_test[chosen]
            self.is_test = own.to(device)
        self.pixels = NormalisedPixels(images, info, data.pool, device, chosen)
        """Pixels of one view."""
        self.view_partners: Tensor | None = None
        """Index of each image's second view, (images,), int32; None for single views."""
        self.views = data.views
        """Kind of views: decides how an image and its second view are combined."""
        self.class_views: Tensor | None = None
        """Random second view of each class, (classes, channels, height, width); None for other
        views.
        """
        if data.views == "orthogonal":
            drawn_views = draw_class_views(info.num_classes, self.pixels.shape, seed)
            self.class_views = drawn_views.to(device)
        self.right_labels = labels.to(device)
        """Labels before label noise, (images,), int64."""
        if data.pairs_classes:
            paired = pair_classes(info.num_classes, seed)
            self.view_partners = draw_view_partners(labels, paired, seed).int().to(device)
        noisy = draw_noise(labels.numpy(), info.num_classes, data, seed)
        self.labels = torch.from_numpy(noisy).to(device)
        """Labels after label noise, (images,), int64."""
        self.augmentation: Augmentation = data.augment
        """Augmentation; `batch` applies it if its random values are given."""
        self._stacked = data.num_stacked

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels (of both views, if two are stacked), height and width of the network's input."""
        channels, height, width = self.pixels.shape
        return (channels * self._stacked, height, width)

    def unaugmented(self, indices: Tensor) -> Tensor:
        """Return normalised images without augmentation and second view."""
        return self.pixels[indices.to(self.labels.device, non_blocking=True)]

    def batch(
        self,
        indices: Tensor,
        scaling: Tensor,
        augmentation: Tensor | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return images as the network gets them: normalised, augmented, with their second views.

        With concatenated views the result is `concat([gamma x, (1 - gamma) x'])` over channels,
        with x' the second view of the image x; with added views it is gamma x + (1 - gamma) x'.
        gamma scales normalised pixels, so that gamma = 0 gives the mean pixel.
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
        # Images alternate with their view partners: each pair is one image of twice the channels.
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
        images = self.pixels.augmented(indices, drawn, self.augmentation)
        if images.shape != (expected := (len(indices), *self.pixels.shape)):
            got = f"returned images of shape {tuple(images.shape)}, expected {expected}"
            raise ContractError(self.augmentation, got)
        return images


class EvaluationImages:
    """Validation or test images of one run on a device."""

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
        """Slices of the validation or test images; those of one slice are evaluated together."""
        step = images_per_batch(self._pixels.shape[1:].numel())
        return [slice(start, start + step) for start in range(0, len(self), step)]

    def __getitem__(self, chosen: slice) -> Tensor:
        """Return normalised images, (batch, channels or 2 channels, height, width), float32."""
        own = self._pixels[chosen]
        return torch.cat([own, torch.zeros_like(own)], dim=1) if self._concat else own
