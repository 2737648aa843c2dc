"""Facts of a dataset: sizes, classes, statistics and files; how to download and read it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mixup_core.problem import DataError as DataError

if TYPE_CHECKING:  # torch is loaded by what reads pixels alone
    from mixup_core.images.data.pixels import Images

SplitName = Literal["train", "test"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetInfo:
    """Facts that validation and planning need. Holds no pixels and does not import torch."""

    title: str
    """Name for captions."""
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
        """Size of all images in memory, in bytes, as uint8."""
        per_image = self.channels * self.image_size**2
        return (self.num_train + self.num_test) * per_image


Sources = tuple[Mapping[str, Callable[[Path], None]], str]
"""Downloads by the name of their source, each a function that fills a staging folder; and advice if
all of them fail.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """A dataset that is a file of an installed package, instead of files to download."""

    package: str
    """Name of the package, for pip."""
    file: Callable[[], Path | None]
    """Finds the file; returns None if the package is missing."""


def _no_sources(root: Path) -> Sources:
    return {}, f"put its files below {root}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """A dataset. Built-in ones have one file each in `images/data/sets`; plugins can add more."""

    name: str
    info: DatasetInfo
    """Facts at the size of its images. If the sizes vary, at the size to which they are resized by
    default.
    """
    files: Mapping[SplitName, dict[str, str]] = field(default_factory=dict)
    """Files of each split: paths below the root, with sha256 or md5 of the content.

    Both splits can be in one file. Empty if a package contains the data, or they are computed.
    """
    sources: Callable[[Path], Sources] = _no_sources
    """Returns the sources, given the root folder."""
    read: "Callable[[Path, SplitName, int], Images]"
    """(root, split, side of the images) to the images of a split. The files have been verified
    before. The side is ignored if all images have one size.
    """
    bundle: Bundle | None = None
    """Package that contains the data, if no files are downloaded."""
