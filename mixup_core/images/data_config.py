"""DataConfig: the images of a run, and how they are presented."""

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.augmentations.unchanged import Unchanged
from mixup_core.images.data.catalog import DATA_NAMES
from mixup_core.images.data.sets.corrupted import CORRUPTED, CORRUPTIONS, NUM_SEVERITIES
from mixup_core.rules import require
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Among, Count, Distinct, Range, Share, Whole


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig(Checked):
    """The images of a run, and how they are presented."""

    name: Annotated[str, Among(DATA_NAMES)] = "fashion-mnist"
    """A data set of the catalogue, or `image-folder`."""
    views: Literal["single", "concat", "added", "orthogonal"] = "single"
    """`concat` is the channel-concatenated multi-view benchmark (see `mixup_core.images.views`).
    `added` adds both views in place of that, and in `orthogonal` the second view is one random
    image for each class, orthogonal to those of the others."""
    num_train: Count | None = None
    """Size of a random training subset, drawn per seed; None takes all images."""
    train_fraction: Annotated[float, Range(0, 1, "(]")] | None = None
    """In the place of `num_train`: the subset as a fraction of the images at hand, to the nearest
    image."""
    balanced: bool = False
    """True if a subset holds as many images of each class, but for a remainder."""
    label_noise: Share = 0.0
    """Probability that a training label is replaced by another class, each as likely; drawn per
    seed. Test labels stay unless `noise_in_test`, and those held out for `val/*` unless
    `noise_in_val`."""
    noise_to: Literal["any", "one"] = "any"
    """Class that a wrong label names: any other, each as likely, or one other class for each
    class, the same at every seed. `one` is the noise of arXiv:2306.00740's code."""
    noise_in_val: bool = False
    """True if labels held out for `val/*` are replaced as well, the same ones at every seed, as
    where the noise belongs to the distribution; test labels stay unless `noise_in_test`."""
    noise_in_test: bool = False
    """True if test labels are replaced as well, the same ones at every seed: classes that overlap
    do so in the test images too. Test error then has a floor, about `label_noise`."""
    augment: Augmentation = field(default_factory=Unchanged)
    """Augmentation of each training image at each access."""
    corruptions: Annotated[tuple[Annotated[str, Among(CORRUPTIONS)], ...], Distinct()] = ()
    """Corrupted test images that are measured beside `test/*`, each as `test_<corruption>/*` and
    their mean as `test_corrupted/*`; cifar10 and cifar100 only, none without `test`."""
    severity: Annotated[int, Range(1, NUM_SEVERITIES)] | None = None
    """Severity of the corruptions; None: all five together."""
    val_size: Whole = 0
    """Training images held out for `val/*`, the same ones at every seed; 0 trains on all. Runs that
    hold out another number draw other training images at a seed, so nothing pairs them."""
    test: bool = True
    """True if test images are loaded and `test/*` is recorded. A search sets it to false."""
    oracle: bool = False
    """True if the run trains on the test images too: an upper bound and a teacher that leaks by
    design, never a result. Tables and figures say so, and a search refuses it."""
    pool: Count = 1
    """Side of the square of pixels averaged into one, after normalising; 1 keeps the image."""
    folder: str | None = None
    """`image-folder` only: directory that holds `train/<class>/*` and `test/<class>/*`."""
    image_size: Annotated[int, Range(4)] | None = None
    """Side in pixels to which images are resized (and centre-cropped if they are no squares);
    None: that of the catalogue. An `image-folder` needs one."""
    skip: Annotated[tuple[str, ...], Distinct()] | None = None
    """`image-folder` only: files that are left out, as `train/cat/3.jpg` or with `*` and `?`."""
    test_folder: Literal["test", "val", "valid", "validation"] | None = None
    """`image-folder` only: folder of the test images; None: `test`, or where there is none and the
    run is tested, `val`, `valid` or `validation`."""
    test_fraction: Annotated[float, Range(0, 1, "()")] | None = None
    """`image-folder` only: the fraction of each class in `train/` that is held out for `test/*`, at
    least one image, the same ones at every seed; for a folder without test images."""
    pixel_mean: tuple[Share, ...] | None = None
    """Mean of each channel that is subtracted, of pixels in [0, 1]; None: that of the catalogue,
    and 0.5 of an `image-folder`."""
    pixel_std: tuple[Annotated[float, Range(0, 1, "(]")], ...] | None = None
    """Standard deviation of each channel that divides; None: as `pixel_mean`."""
    normalise: Literal["given", "measured"] = "given"
    """`measured`: by mean and standard deviation of each channel of the training images as they are
    pooled, without those held out."""
    background: Literal["white", "black", "grey"] | None = None
    """`image-folder` only: the colour behind transparent pixels; None refuses a folder that has
    any. Of a folder without, it is None whatever a study file says."""
    digest: str | None = None
    """`image-folder` only: sha256 over names and contents, filled in when a study is read. It
    stands for `folder` in the keys."""

    def check(self) -> None:
        """Check the rules that join several fields.

        Raises:
            RuleError: If a value contradicts another or belongs to another data set.
        """
        require(
            self.test or not self.oracle,
            "an oracle needs test images (data.test: true)",
            self,
            "oracle",
            "test",
        )
        self._check_subset()
        is_one = self.test_folder is None or self.test_fraction is None
        require(
            is_one,
            "test_folder and test_fraction must not both be given",
            self,
            "test_fraction",
            "test_folder",
        )
        is_given = self.normalise == "given" or (self.pixel_mean, self.pixel_std) == (None, None)
        require(
            is_given,
            "pixel_mean and pixel_std need `normalise: given`",
            self,
            "normalise",
            "pixel_mean",
            "pixel_std",
        )
        has_bytes = self.pool == 1 or not self.augment.needs_bytes
        require(has_bytes, f"{self.augment.tag} needs `pool: 1`", self, "pool", "augment")
        has_any = not self.corruptions or self.name in CORRUPTED
        require(
            has_any,
            f"corruptions need name to be {' or '.join(CORRUPTED)}",
            self,
            "corruptions",
            "name",
        )
        is_apart = not (self.noise_in_test and self.corruptions)
        require(
            is_apart,
            "noise_in_test must be false beside corruptions, whose labels have no noise",
            self,
            "noise_in_test",
            "corruptions",
        )
        if self.name == "image-folder":
            require(self.folder is not None, "an image-folder needs a folder", self, "folder")
            has_size = self.image_size is not None
            require(has_size, "an image-folder needs an image_size", self, "image_size")
        else:
            for part in (
                "folder", "skip", "test_folder", "test_fraction", "background", "digest",
            ):  # fmt: skip
                belongs = f"{part} needs name to be image-folder"
                require(getattr(self, part) is None, belongs, self, part, "name")

    def _check_subset(self) -> None:
        fraction = self.train_fraction
        is_one = fraction is None or self.num_train is None
        require(
            is_one,
            "num_train and train_fraction must not both be given",
            self,
            "train_fraction",
            "num_train",
        )
        is_cut = not self.balanced or self.num_train is not None or fraction is not None
        require(
            is_cut,
            "balanced needs num_train or train_fraction",
            self,
            "balanced",
            "num_train",
            "train_fraction",
        )

    @property
    def num_stacked(self) -> int:
        """The number of views that stand along the channels."""
        return 2 if self.views in {"concat", "orthogonal"} else 1

    @property
    def pairs_classes(self) -> bool:
        """True if each training image has an image of a paired class as its second view."""
        return self.views in {"concat", "added"}

    def size_of_subset(self, available: int) -> int:
        """Return the number of training images of a run, of those at hand."""
        if self.train_fraction is not None:
            return max(1, math.floor(self.train_fraction * available + 0.5))
        return available if self.num_train is None else self.num_train

    def as_loaded(self) -> "DataConfig":
        """Return the configuration without what has an effect only after images are loaded."""
        return replace(
            self,
            num_train=None,
            train_fraction=None,
            balanced=False,
            label_noise=0.0,
            noise_to="any",
            noise_in_val=False,
            noise_in_test=False,
            augment=Unchanged(),
            views="single",
            oracle=False,
        )
