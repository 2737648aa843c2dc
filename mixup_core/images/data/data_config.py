"""DataConfig: the dataset of a run and how its images are prepared."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Among, Count, Distinct, Range, Share, Whole
from mixup_core.images.augmentations.augmentation import Augmentation, Unchanged
from mixup_core.images.data.facts import DatasetInfo
from mixup_core.images.data.sets import DATA_NAMES
from mixup_core.images.data.sets.corrupted import CORRUPTED, CORRUPTIONS, NUM_SEVERITIES
from mixup_core.rules import RuleError, require, require_one

SPLIT = (
    "data.num_train", "data.train_fraction", "data.val_size", "data.folds", "data.folder",
    "data.name",
)  # fmt: skip
"""Paths of the fields that determine the number of training images."""
TestFolder = Literal["test", "val", "valid", "validation"]
_OF_A_FOLDER = ("folder", "skip", "test_folder", "test_fraction", "background", "digest")
"""Fields that only an `image-folder` has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig(Checked):
    """The dataset of a run, its subsets and folds, and how its images are prepared."""

    # Frozen: each field name and default in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    name: Annotated[str, Among(DATA_NAMES)] = "fashion-mnist"
    """Name of a dataset of the catalogue, or `image-folder`."""
    views: Literal["single", "concat", "added", "orthogonal"] = "single"
    """Views that form the network's input. `single`: the image alone. `concat`, the multi-view
    benchmark: the image and, as its second view, an image of the paired class, concatenated along
    the channels (see `mixup_core.images.views`). `added`: the same two views, added. `orthogonal`:
    concatenated as for `concat`, but the second view is noise, one noise image for each class;
    those of different classes are orthogonal vectors.
    """
    num_train: Count | None = None
    """Size of a random training subset, drawn per seed. None: all images."""
    train_fraction: Annotated[float, Range(0, 1, "(]")] | None = None
    """Size of the subset as a fraction of the training images, rounded; instead of `num_train`."""
    balanced: bool = False
    """True: draw a subset with equally many images of each class, up to a remainder."""
    label_noise: Share = 0.0
    """Probability that a training label is replaced by another class; drawn per seed. Test labels
    are replaced only with `noise_in_test`, held-out labels (`val/*`) only with `noise_in_val`.
    """
    noise_to: Literal["any", "one"] = "any"
    """Replacement of a wrong label: `any` other class with equal probability, or `one` fixed
    other class for each class, the same at every seed, as in the code of arXiv:2306.00740.
    """
    noise_in_val: bool = False
    """True: replace held-out labels (`val/*`) too, the same ones at every seed, as if the noise
    were part of the distribution.
    """
    noise_in_test: bool = False
    """True: replace test labels too, the same ones at every seed. Classes then overlap in the test
    images, and the smallest possible test error is about `label_noise`.
    """
    augment: Augmentation = field(default_factory=Unchanged)
    """Augmentation applied to a training image each time it is used."""
    corruptions: Annotated[tuple[Annotated[str, Among(CORRUPTIONS)], ...], Distinct()] = ()
    """Corruptions of test images to measure in addition, each as `test_<corruption>/*`, and their
    mean as `test_corrupted/*`. Only for cifar10 and cifar100, and only with `test`.
    """
    severity: Annotated[int, Range(1, NUM_SEVERITIES)] | None = None
    """Severity of the corruptions, 1 to 5. None: all five severities together."""
    val_size: Whole = 0
    """Number of training images held out for `val/*`, the same ones at every seed. 0: train on all.
    Runs with different values draw different training images at a seed and therefore cannot be
    paired.
    """
    folds: Annotated[int, Range(2)] | None = None
    """Number of folds into which the training images are divided, instead of `val_size`: seed s
    holds out fold s modulo `folds` for `val/*`. With as many seeds this is a cross-validation. The
    folds are the same for all arms.
    """
    fold: Whole | None = None
    """Fold that a run holds out (0-based); filled in together with the seed."""
    test: bool = True
    """True: load test images and record `test/*`. A search sets it to false."""
    oracle: bool = False
    """True: train on the test images too. Such a run is an upper bound, or a teacher that leaks by
    design, never a result: tables and figures say so, and a search refuses it.
    """
    pool: Count = 1
    """Side of the squares of pixels that are averaged after normalisation. 1: no pooling."""
    folder: str | None = None
    """Only for `image-folder`: folder with `train/<class>/*` and `test/<class>/*`."""
    image_size: Annotated[int, Range(4)] | None = None
    """Side in pixels to which images are resized; images that are not square are then cropped at
    the centre. None: the dataset's own size. An `image-folder` needs a value.
    """
    skip: Annotated[tuple[str, ...], Distinct()] | None = None
    """Only for `image-folder`: files and classes to leave out, as `train/cat/3.jpg`, `train/owl` or
    with `*` and `?`.
    """
    test_folder: TestFolder | None = None
    """Only for `image-folder`: name of the folder of test images. None: `test`, or if it is
    missing, the first of `val`, `valid` and `validation` that exists.
    """
    test_fraction: Annotated[float, Range(0, 1, "()")] | None = None
    """Only for `image-folder` without test images: fraction of each class in `train/` that is held
    out for `test/*`, at least one image, the same ones at every seed.
    """
    pixel_mean: tuple[Share, ...] | None = None
    """Mean of each channel to subtract, for pixels in [0, 1]. None: the dataset's own; 0.5 for an
    `image-folder`.
    """
    pixel_std: tuple[Annotated[float, Range(1e-6, 1)], ...] | None = None
    """Standard deviation of each channel to divide by. None: as for `pixel_mean`."""
    normalise: Literal["given", "measured"] = "given"
    """`measured`: use mean and standard deviation of each channel of the pooled training images,
    without the held-out ones. `given`: use `pixel_mean` and `pixel_std`.
    """
    background: Literal["white", "black", "grey"] | None = None
    """Only for `image-folder`: colour behind transparent pixels. With None, a folder with
    transparent images is refused. For a folder without transparent images, the field is set to
    None.
    """
    digest: str | None = None
    """Only for `image-folder`: sha256 of the names and contents of its files, filled in when a
    study is read. It replaces `folder` in keys.
    """

    def check(self) -> None:
        rule = "an oracle needs test images (data.test: true)"
        require(self.test or not self.oracle, rule, self, "oracle", "test")
        require_one(self, "train_fraction", "num_train")
        is_cut = not self.balanced or (self.num_train, self.train_fraction) != (None, None)
        rule = "balanced takes as many images of each class: it needs num_train or train_fraction"
        require(is_cut, rule, self, "balanced", "num_train", "train_fraction")
        is_one = self.folds is None or self.val_size == 0
        require(is_one, "folds and val_size must not both be given", self, "folds", "val_size")
        has_fold = self.fold is None or (self.folds is not None and self.fold < self.folds)
        require(has_fold, "fold < folds", self, "fold", "folds")
        require_one(self, "test_fraction", "test_folder")
        is_given = self.normalise == "given" or (self.pixel_mean, self.pixel_std) == (None, None)
        rule = "pixel_mean and pixel_std need `normalise: given`"
        require(is_given, rule, self, "normalise", "pixel_mean", "pixel_std")
        rule = f"corruptions needs the dataset {' or '.join(CORRUPTED)}"
        require(not self.corruptions or self.name in CORRUPTED, rule, self, "corruptions", "name")
        rule = "noise_in_test must be false if corruptions are given, whose labels have no noise"
        is_apart = not (self.noise_in_test and self.corruptions)
        require(is_apart, rule, self, "noise_in_test", "corruptions")
        if self.name == "image-folder":
            rule = "`name: image-folder` needs `folder`, the path of the images"
            require(self.folder is not None, rule, self, "folder")
            rule = "`name: image-folder` needs `image_size`, their side in pixels"
            require(self.image_size is not None, rule, self, "image_size")
        else:
            for part in _OF_A_FOLDER:
                belongs = f"{part} needs `name: image-folder`"
                require(getattr(self, part) is None, belongs, self, part, "name")

    @property
    def photos(self) -> tuple[Path, int]:
        """Path of an `image-folder`, and the side of its images in pixels."""
        assert self.folder is not None, "asked of an image-folder"
        assert self.image_size is not None, "asked of an image-folder"
        return Path(self.folder), self.image_size

    @property
    def num_stacked(self) -> int:
        """Number of images (1 or 2) that are stacked along the channels as one input."""
        return 2 if self.views in {"concat", "orthogonal"} else 1

    def input_shape(self, info: DatasetInfo) -> tuple[int, int]:
        """Return the channels of the network's input, and its side in pixels."""
        return info.channels * self.num_stacked, info.image_size // self.pool

    @property
    def pairs_classes(self) -> bool:
        """True if each training image gets a second view from the class paired with its own."""
        return self.views in {"concat", "added"}

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the held-out images, `val`, `test` and `test_<corruption>`, before the slash."""
        named = (*(f"test_{name}" for name in self.corruptions), "test_corrupted")
        corrupted = named if self.corruptions else ()
        return (
            *(("val",) if self.holds_out else ()),
            *(("test", *corrupted) if self.test else ()),
        )

    def num_held_out(self, available: int) -> int:
        """Return the number of training images held out for validation (metrics `val/*`)."""
        if self.folds is None:
            return self.val_size
        return math.ceil((available - (self.fold or 0)) / self.folds)

    @property
    def holds_out(self) -> bool:
        """True if training images are held out for validation (metrics `val/*`)."""
        return self.val_size > 0 or self.folds is not None

    def size_of_subset(self, available: int) -> int:
        """Return the number of training images that a run uses, given the number available."""
        if self.train_fraction is not None:
            return max(1, math.floor(self.train_fraction * available + 0.5))
        return available if self.num_train is None else self.num_train

    def num_available(self, info: DatasetInfo) -> int:
        """Return the number of images from which the subset is drawn; below 1: too few."""
        held_out = self.num_held_out(info.num_train)
        return info.num_train - held_out + (info.num_test if self.oracle else 0)

    def num_images(self, info: DatasetInfo) -> int:
        """Return the number of training images in one epoch."""
        return self.size_of_subset(self.num_available(info))

    def unfit(self, info: DatasetInfo) -> Iterator[RuleError]:
        """Yield the reasons why these settings do not fit the dataset that `info` describes."""
        if info.num_classes < 2:
            yield RuleError(
                "training needs two classes or more",
                {"classes": info.num_classes},
                fields=("data.folder", "data.name"),
            )
        if info.image_size % self.pool:
            yield RuleError(
                "pool must divide the image size",
                {"pool": self.pool, "image_size": info.image_size},
                fields=("data.pool", "data.image_size", "data.name"),
            )
        for path, given in (("pixel_mean", self.pixel_mean), ("pixel_std", self.pixel_std)):
            if given is not None and len(given) != info.channels:
                yield RuleError(
                    f"{path} needs one value per channel",
                    {path: given, "channels": info.channels},
                    fields=(f"data.{path}", "data.name"),
                )
        yield from self.unfit_views(info)
        if self.folds is not None and self.folds > info.num_train:
            yield RuleError(
                "folds <= training images",
                {"folds": self.folds, "training images": info.num_train},
                fields=("data.folds", "data.folder", "data.name"),
            )
        available = self.num_available(info)
        if available < 1:
            yield RuleError(
                "val_size < training images",
                {
                    "val_size": self.num_held_out(info.num_train),
                    "training images": info.num_train,
                },
                fields=("data.val_size", "data.folds", "data.folder", "data.name"),
            )
            return
        num_train = self.size_of_subset(available)
        each = num_train // max(info.num_classes, 1)
        if num_train > available:
            yield RuleError(
                "num_train must be at most the number of training images that are not held out",
                {"num_train": num_train, "images not held out": available},
                fields=SPLIT,
            )
        elif self.pairs_classes and num_train < info.num_classes:
            yield RuleError(
                "two views need a training image of each class",
                {"training images": num_train, "classes": info.num_classes},
                fields=("data.num_train", "data.train_fraction", "data.val_size", "data.views"),
            )
        elif self.balanced and not self.oracle and each > info.smallest_class:
            yield RuleError(
                "a balanced subset needs enough images of each class",
                {
                    "images wanted of each class": each,
                    "images in the smallest class": info.smallest_class,
                },
                fields=("data.balanced", *SPLIT),
            )

    def unfit_views(self, info: DatasetInfo) -> Iterator[RuleError]:
        """Yield the reasons why the dataset has not the classes or pixels that `views` needs."""
        if self.pairs_classes and info.num_classes % 2:
            yield RuleError(
                "class pairing needs an even number of classes",
                {"classes": info.num_classes},
                fields=("data.views", "data.folder", "data.name"),
            )
        values = info.channels * (info.image_size // self.pool) ** 2
        if self.views == "orthogonal" and info.num_classes > values:
            yield RuleError(
                "orthogonal views need at least as many pixel values in an image as classes",
                {"pixel values": values, "classes": info.num_classes},
                fields=("data.views", "data.pool", "data.image_size", "data.name"),
            )

    def as_loaded(self) -> "DataConfig":
        """Return a copy with defaults in fields that do not affect loading, such as the subset."""
        kept = {name: getattr(self, name) for name in self.__slots__ if name not in _AFTER_LOADING}
        return type(self)(**kept)


_AFTER_LOADING = {
    "num_train", "train_fraction", "balanced", "label_noise", "noise_to", "noise_in_val",
    "noise_in_test", "augment", "views", "oracle",
}  # fmt: skip
