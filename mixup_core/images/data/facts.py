"""Dataset, DatasetInfo: sizes, classes and files of a dataset, and functions that read them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mixup_core.arrays import NDArray, np
from mixup_core.images.data.pixels import Images
from mixup_core.problem import DataError as DataError

SplitName = Literal["train", "test"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetInfo:
    """Facts about a dataset, such as sizes and classes, for checking and planning studies.

    Example:
        >>> from mixsweep.plugins import DatasetInfo
        >>> info = DatasetInfo(
        ...     title="spots", num_train=400, num_test=200, num_classes=4, channels=1, image_size=8,
        ...     mean=(0.35,), std=(0.2,), smallest_class=100,
        ... )
        >>> info.classes  # names are optional
        ()
    """

    title: str
    """Name of the dataset in captions."""
    num_train: int
    num_test: int
    num_classes: int
    channels: int
    image_size: int
    """Height and width in pixels."""
    mean: tuple[float, ...]
    """Mean of each channel, for pixels in [0, 1]; normalisation subtracts it."""
    std: tuple[float, ...]
    """Standard deviation of each channel; normalisation divides by it."""
    smallest_class: int
    """Number of training images of the smallest class."""
    classes: tuple[str, ...] = ()
    """Names of the classes in the order of the labels; empty if they have no names."""

    @property
    def num_bytes(self) -> int:
        """Size of all images in memory as uint8, in bytes.

        Example:
            >>> from mixup_core.images.data.sets.digits import DATASET
            >>> DATASET.info.num_bytes  # 1 437 + 360 images of 8 x 8 pixels
            115008
        """
        per_image = self.channels * self.image_size**2
        return (self.num_train + self.num_test) * per_image


Sources = tuple[Mapping[str, Callable[[Path], None]], str]
"""Functions that download a dataset into a staging folder, by name of the source; and advice for
the user if all of them fail.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """A dataset that comes as a file of an installed package and needs no download.

    Example:
        >>> from mixup_core.images.data.sets.digits import DATASET
        >>> DATASET.bundle.package, DATASET.bundle.file().name
        ('scikit-learn', 'digits.csv.gz')
    """

    package: str
    """Name of the package, for pip."""
    file: Callable[[], Path | None]
    """Returns the path of the file, or None if the package is missing."""


def _no_sources(root: Path) -> Sources:
    return {}, f"put its files below {root}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """A dataset that study files can name: facts, files, download, and functions that read it.

    Built-in datasets are in `images/data/sets`; plugins can add more.

    Example:
        >>> import numpy as np
        >>> from mixsweep.plugins import Dataset, DatasetInfo, Images
        >>> info = DatasetInfo(
        ...     title="dots", num_train=20, num_test=10, num_classes=2, channels=1, image_size=8,
        ...     mean=(0.5,), std=(0.3,), smallest_class=10,
        ... )
        >>> def read(root, split, size):
        ...     labels = np.arange(20 if split == "train" else 10) % 2
        ...     pixels = np.zeros((len(labels), 1, 8, 8), np.uint8)
        ...     pixels[:, 0, labels, labels] = 255
        ...     return Images.of_arrays(pixels, labels)
        >>> dots = Dataset(name="dots", info=info, read=read)
        >>> len(dots.read(None, "test", 8))
        10
    """

    name: str
    info: DatasetInfo
    """Facts about the dataset. If the sizes of its images vary, `image_size` is the size to which
    they are resized by default.
    """
    files: Mapping[SplitName, dict[str, str]] = field(default_factory=dict)
    """Files of each split: paths below the root, with sha256 or md5 of the content.

    Both splits can be in one file. Empty if a package contains the data, or they are computed.
    """
    sources: Callable[[Path], Sources] = _no_sources
    """Takes the root folder and returns the sources of the download."""
    read: Callable[[Path, SplitName, int], Images]
    """Takes root, split and side of the images in pixels; returns the images of the split. The
    files have been verified before. The side is ignored if all images have one size.
    """
    labels: "Callable[[Path, SplitName], NDArray[np.int64]] | None" = None
    """Takes root and split; returns the labels without loading torch, so that a study file is read
    quickly. None if labels are only read together with images.
    """
    bundle: Bundle | None = None
    """Package that contains the data; None if files are downloaded."""
