"""Facts of a data set: sizes, classes, statistics, files; how to obtain and read it."""

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
    """Facts that validation and planning need; no pixels, no torch."""

    title: str
    """Name for captions."""
    num_train: int
    num_test: int
    num_classes: int
    channels: int
    image_size: int
    """Height and width in pixels."""
    mean: tuple[float, ...]
    """Per channel, of pixels scaled to [0, 1]; subtracted when normalising."""
    std: tuple[float, ...]
    """Per channel; divides when normalising."""
    smallest_class: int
    """Fewest training images of a class."""
    classes: tuple[str, ...] = ()
    """Names in the order of the labels; empty where labels have no names of their own."""

    @property
    def num_bytes(self) -> int:
        """Bytes of all its images as they are held in memory, uint8."""
        per_image = self.channels * self.image_size**2
        return (self.num_train + self.num_test) * per_image


Sources = tuple[Mapping[str, Callable[[Path], None]], str]
"""Name of each source and the function that fills a staging folder; advice without a source."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """A file of an installed package that holds a data set, in the place of files to fetch."""

    package: str
    """Name of the package for pip."""
    file: Callable[[], Path | None]
    """Finds the file; None without the package."""


def _no_sources(root: Path) -> Sources:
    return {}, f"put its files below {root}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """A data set: one file of `images/data/sets` each, or a value in a plugin."""

    name: str
    info: DatasetInfo
    """At the size in which its images come, or, where they come in many, in which they are read by
    default."""
    files: Mapping[SplitName, dict[str, str]] = field(default_factory=dict)
    """Files of each split: paths below the root with the sha256 or md5 of their content.

    Both splits may be in one file. Empty: a package brings the files, or they are computed."""
    sources: Callable[[Path], Sources] = _no_sources
    """Takes the root."""
    read: "Callable[[Path, SplitName, int], Images]"
    """(root, split, side of the images) to the images of a split, whose files have been verified.
    Where they come in one size the side is ignored."""
    bundle: Bundle | None = None
    """Package that contains the data where no files are fetched."""
