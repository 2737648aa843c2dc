"""Images, Dataset, DatasetInfo: a dataset's images, its facts and files, and how it is read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mixup_core.arrays import Ints, Tensor, np, torch, torchvision
from mixup_core.problem import DataError as DataError

_IMAGES_PER_RESIZE = 1000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Images:
    """Raw pixels and labels of the images of one split, such as the test images.

    Example:
        >>> import numpy as np
        >>> from mixsweep.plugins import Images
        >>> images = Images.of_arrays(np.zeros((5, 3, 8, 8), np.uint8), np.array([0, 1, 2, 0, 1]))
        >>> len(images), images.pixels.dtype, images.labels
        (5, torch.uint8, tensor([0, 1, 2, 0, 1]))
    """

    pixels: Tensor
    """Raw pixels, (images, channels, height, width), uint8. Pooled images are int16, or int32 if
    that overflows.
    """
    labels: Tensor
    """Labels, (images,), int64, each in [0, classes)."""
    pool: int = 1
    """Side of the squares of pixels whose sums are stored; 1: single pixels."""
    num_test: int = 0
    """Number of test images, which are the last images; 0 unless `data.oracle` is true."""

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of_arrays(cls, pixels: Any, labels: Any) -> "Images":
        """Return images from NumPy arrays.

        Args:
            pixels: (images, channels, height, width), uint8.
            labels: (images,), any integer type.

        Example:
            >>> import numpy as np
            >>> from mixsweep.plugins import Images
            >>> pixels = np.full((2, 1, 4, 4), 255, np.uint8)
            >>> Images.of_arrays(pixels, [0, 1]).pixels.shape
            torch.Size([2, 1, 4, 4])
        """
        return cls(
            pixels=torch.from_numpy(np.ascontiguousarray(pixels)),
            labels=torch.from_numpy(np.asarray(labels).astype(np.int64)),
        )

    @classmethod
    def of_pictures(cls, pictures: Iterable[tuple[Any, int]], count: int, size: int) -> "Images":
        """Return images from Pillow images of any size, as RGB squares, decoded one at a time.

        Args:
            pictures: Pairs of image and label.
            count: Number of images.
            size: Side of the squares in pixels; images are resized, then cropped at the centre.

        Example:
            >>> from PIL import Image
            >>> from mixsweep.plugins import Images
            >>> pictures = [(Image.new("L", (40, 30)), 0), (Image.new("RGB", (50, 60)), 1)]
            >>> Images.of_pictures(pictures, count=2, size=16).pixels.shape
            torch.Size([2, 3, 16, 16])
        """
        pixels = torch.empty(count, 3, size, size, dtype=torch.uint8)
        labels = torch.empty(count, dtype=torch.int64)
        for index, (picture, label) in enumerate(pictures):
            pixels[index] = squared(picture.convert("RGB"), size)
            labels[index] = label
        return cls(pixels=pixels, labels=labels)

    def resized(self, size: int) -> "Images":
        """Return the images at another size, by bilinear interpolation with antialiasing.

        Args:
            size: Height and width of the result, in pixels.

        Example:
            >>> import numpy as np
            >>> from mixsweep.plugins import Images
            >>> Images.of_arrays(np.zeros((2, 1, 8, 8), np.uint8), [0, 1]).resized(4).pixels.shape
            torch.Size([2, 1, 4, 4])
        """
        if self.pixels.shape[-1] == size:
            return self
        parts = [
            torchvision.transforms.functional.resize(part, [size, size], antialias=True)
            for part in torch.split(self.pixels, _IMAGES_PER_RESIZE)
        ]
        return Images(pixels=torch.cat(parts), labels=self.labels)

    def pooled(self, pool: int) -> "Images":
        """Return the images with each square of `pool` x `pool` pixels replaced by its sum.

        Args:
            pool: Side of the squares; must divide height and width. Images that are pooled already
                can only be pooled by the same value, which leaves them as they are.

        Raises:
            ValueError: If the images are pooled with another value.

        Example:
            >>> import numpy as np
            >>> from mixsweep.plugins import Images
            >>> images = Images.of_arrays(np.full((1, 1, 4, 4), 100, np.uint8), [0])
            >>> images.pooled(2).pixels  # sums of 2 x 2 pixels
            tensor([[[[400, 400],
                      [400, 400]]]], dtype=torch.int16)
        """
        if self.pool == pool:
            return self
        if self.pool != 1:
            raise ValueError(
                f"images can be reduced by one `pool` only, got ({self.pool=}, {pool=})."
            )
        num, channels, height, width = self.pixels.shape
        squares = self.pixels.reshape(num, channels, height // pool, pool, width // pool, pool)
        dtype = torch.int16 if 255 * pool**2 <= torch.iinfo(torch.int16).max else torch.int32
        return Images(pixels=squares.sum((3, 5), dtype=dtype), labels=self.labels, pool=pool)


def squared(picture: Any, size: int) -> Tensor:
    """Return a Pillow image as a square tensor, (3, size, size): resized, then centre-cropped."""
    functional = torchvision.transforms.functional
    resized = functional.resize(picture, [size])  # bilinear; on a Pillow image always antialiased
    square: Tensor = functional.pil_to_tensor(functional.center_crop(resized, [size, size]))
    return square


_PIXELS_PER_BATCH = 1000 * 96 * 96
"""Number of pixels evaluated together: 1,000 images of STL-10, or 183 of side 224."""


def images_per_batch(pixels: int) -> int:
    """Return the number of images to evaluate together: 1,000, or fewer if they are large."""
    return max(1, min(1000, _PIXELS_PER_BATCH // pixels))


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
    files: Mapping[SplitName, Mapping[str, str]] = field(default_factory=dict)
    """Files of each split: paths below the root, with sha256 or md5 of the content.

    Both splits can be in one file. Empty if a package contains the data, or they are computed.
    """
    sources: Callable[[Path], Sources] = _no_sources
    """Takes the root folder and returns the sources of the download."""
    read: Callable[[Path, SplitName, int], Images]
    """Takes root, split and side of the images in pixels; returns the images of the split. The
    files have been verified before. The side is ignored if all images have one size.
    """
    labels: Callable[[Path, SplitName], Ints] | None = None
    """Takes root and split; returns the labels without loading torch, so that a study file is read
    quickly. None if labels are only read together with images.
    """
    bundle: Bundle | None = None
    """Package that contains the data; None if files are downloaded."""
