"""Loading: `load` returns all splits of a run, `read_split` one split of a dataset."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from mixup_core.images.data.catalog import DATASETS, DataError, DatasetInfo, SplitName
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.draws import draw_held_out_noise, split_off
from mixup_core.images.data.fetching import data_root, verify
from mixup_core.images.data.file_faults import FileFault, FileFaultsError
from mixup_core.images.data.folders import (
    Layout,
    class_files,
    describe,
    folder_and_size,
    folder_digest,
    split_classes,
)
from mixup_core.images.data.pictures import rgb_picture
from mixup_core.images.data.pixels import Images, squared
from mixup_core.images.data.sets.corrupted import CORRUPTED, read_corrupted
from mixup_core.seeding import watched

__all__ = ["Images", "Splits", "load", "read_split"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Splits:
    """Images of a dataset by split, as loaded: before a subset is drawn and pixels normalised."""

    info: DatasetInfo
    train: Images
    """Training images without the held-out ones, in the order of the files."""
    val: Images | None
    """Images held out of the training images, the same at every seed (except with folds); None if
    none are held out.
    """
    test: Images | None
    """Test images; None if `data.test` is false."""
    corrupted: Mapping[str, Images] = field(default_factory=dict)
    """Test images under each corruption of `data.corruptions`, by name of the corruption."""

    def held_out(self, data: DataConfig) -> dict[str, Images]:
        """Return validation, test, corrupted images by metric prefix: `val`, `test`, `test_fog`."""
        splits = {
            name: replace(images, labels=self._noisy(name, images.labels, data))
            for name, images in (("val", self.val), ("test", self.test))
            if images is not None
        }
        corrupted = {f"test_{name}": images for name, images in self.corrupted.items()}
        return splits | corrupted

    def _noisy(self, split: str, labels: torch.Tensor, data: DataConfig) -> torch.Tensor:
        drawn = draw_held_out_noise(labels.numpy(), self.info.num_classes, data, split)
        return torch.from_numpy(drawn)

    def seen_by(self, data: DataConfig) -> Images:
        """Return the images that a run can train on; with `data.oracle`, test images are included.

        Raises:
            ValueError: If `data.oracle` is set and there are no test images.
        """
        if not data.oracle:
            return self.train
        if self.test is None:
            raise ValueError(f"an oracle needs test images (data.test: true), got ({data=}).")
        pixels, labels = (
            torch.cat([getattr(part, name) for part in (self.train, self.test)])
            for name in ("pixels", "labels")
        )
        return replace(self.train, pixels=pixels, labels=labels, num_test=len(self.test))

    def normalised(self, data: DataConfig) -> "Splits":
        """Return the splits with mean and standard deviation of each channel in their `info`.

        The pixels do not change; training normalises them by these two. `data.normalise: measured`
        computes them from the training images; `given` keeps those in the facts about the dataset.
        """
        if data.normalise == "given":
            return self
        mean, std = _measured(self.train)
        return replace(self, info=replace(self.info, mean=mean, std=std))

    def pooled(self, pool: int) -> "Splits":
        """Return the images, with each square of `pool` x `pool` pixels replaced by its sum."""
        return replace(
            self,
            train=self.train.pooled(pool),
            val=self.val and self.val.pooled(pool),
            test=self.test and self.test.pooled(pool),
            corrupted={name: images.pooled(pool) for name, images in self.corrupted.items()},
        )


def _measured(images: Images) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each channel of pooled pixels, in [0, 1]."""
    scale = 255 * images.pool**2
    count = images.pixels[:, 0].numel()
    means, stds = [], []
    for channel in images.pixels.unbind(1):
        parts = [part.long() for part in torch.split(channel, _IMAGES_PER_SUM)]
        first = sum(int(part.sum()) for part in parts) / count  # sums of integers are exact
        second = sum(int(part.square().sum()) for part in parts) / count
        means.append(first / scale)
        stds.append(max(math.sqrt(max(0.0, second - first**2)) / scale, 1 / 255))
    return tuple(means), tuple(stds)


_IMAGES_PER_SUM = 1000


def load(data: DataConfig, root: Path | None = None) -> Splits:
    """Load a dataset from disk and check it. Nothing is downloaded.

    If `data.test` is false, test images are not decoded, so that no number can depend on them. Only
    the digest of an image-folder, which shows changes of its files, reads the bytes under `test/`.
    """
    root = data_root() if root is None else root
    info = describe(data)
    train = read_split(data, root, "train")
    _check(train, info, info.num_train, f"{data.name} train")
    test = read_split(data, root, "test") if data.test else None
    if test is not None:
        _check(test, info, info.num_test, f"{data.name} test")
    corrupted = {}
    for name in data.corruptions if data.test else ():
        of, severity = CORRUPTED[data.name], data.severity
        images = read_corrupted(root, of, name, severity, info.num_test)
        corrupted[name] = images.resized(info.image_size)
    val = None
    if data.holds_out:
        train, val = _hold_out(train, data)
    splits = Splits(info=info, train=train, val=val, test=test, corrupted=corrupted)
    return splits.pooled(data.pool).normalised(data)


def read_split(data: DataConfig, root: Path, split: SplitName) -> Images:
    """Return the images of one split of a dataset, in the configured size."""
    if data.name == "image-folder":
        return _image_folder(data, root, split)
    dataset = DATASETS[data.name]
    if dataset.files:
        verify(dataset.name, root, split)
    size = data.image_size or dataset.info.image_size
    with watched(may_use_python=True) as drawn:
        images = dataset.read(root, split, size).resized(size)
    if drawn and (origin := DATASETS.origins.get(dataset.name)):
        raise DataError(
            f"plugin {origin.plugin}: reading the dataset {dataset.name} draws from the global "
            f"generator of {' and '.join(drawn)}, so that every reading gives other images; draw "
            "from numpy.random.default_rng(SEED)"
        )
    return images


def _image_folder(data: DataConfig, root: Path, split: SplitName) -> Images:
    """Decode a user's images to RGB: shorter side resized to `data.image_size`, centre-cropped."""
    folder, size = folder_and_size(data)
    layout = Layout.of(data)
    is_named = split == "train" and data.digest is not None
    if is_named and folder_digest(folder, root, layout) != data.digest:
        raise DataError(
            f"{folder}: its images changed since the study was read; start the study again."
        )
    if data.test_fraction is None:
        classes: Mapping[str, Sequence[Path]] = class_files(folder, split, layout)
    else:
        train, test = split_classes(data, class_files(folder, "train", layout), {})
        classes = train if split == "train" else test
    files = [(file, label) for label, of in enumerate(classes.values()) for file in of]
    pixels = torch.empty(len(files), 3, size, size, dtype=torch.uint8)
    faults: list[FileFault] = []
    for image, (file, _) in zip(pixels, files, strict=True):
        try:
            image.copy_(squared(rgb_picture(file, size, data.background), size))
        except DataError as error:
            faults.append(FileFault.of(error, file, folder))
    if faults:
        raise FileFaultsError(folder, faults)
    return Images(pixels=pixels, labels=torch.tensor([label for _, label in files]))


def _check(images: Images, info: DatasetInfo, num_images: int, where: str) -> None:
    pixels, labels = images.pixels, images.labels
    expected = (num_images, info.channels, info.image_size, info.image_size)
    if tuple(pixels.shape) != expected or pixels.dtype != torch.uint8:
        raise DataError(
            f"{where}: images must be uint8 of shape {expected}, "
            f"got {pixels.dtype} of shape {tuple(pixels.shape)}."
        )
    if tuple(labels.shape) != (num_images,) or labels.dtype != torch.int64:
        raise DataError(
            f"{where}: labels must be int64 of shape {(num_images,)}, "
            f"got {labels.dtype} of shape {tuple(labels.shape)}."
        )
    outside = ((labels < 0) | (labels >= info.num_classes)).nonzero()
    if len(outside):
        index = int(outside[0])
        raise DataError(
            f"{where}: labels must be in 0..{info.num_classes - 1}, got {int(labels[index])} at "
            f"index {index}."
        )
    counts = torch.bincount(labels, minlength=info.num_classes)
    if not counts.all():
        raise DataError(f"{where}: class {int(counts.argmin())} has no image.")


def _hold_out(train: Images, data: DataConfig) -> tuple[Images, Images]:
    """Split training images into those that stay and those that are held out."""
    kept, held_out = map(torch.from_numpy, split_off(len(train), data))
    return (
        Images(pixels=train.pixels[kept], labels=train.labels[kept]),
        Images(pixels=train.pixels[held_out], labels=train.labels[held_out]),
    )
