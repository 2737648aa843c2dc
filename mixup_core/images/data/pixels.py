"""Images: pixels and labels of one split, with resizing and pooling."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mixup_core.arrays import Tensor, np, torch

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
        from torchvision.transforms import functional

        if self.pixels.shape[-1] == size:
            return self
        parts = [
            functional.resize(part, [size, size], antialias=True)
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
    from torchvision.transforms import functional

    resized = functional.resize(picture, [size])  # bilinear; on a Pillow image always antialiased
    square: Tensor = functional.pil_to_tensor(functional.center_crop(resized, [size, size]))
    return square


_PIXELS_PER_BATCH = 1000 * 96 * 96
"""Number of pixels evaluated together: 1,000 images of STL-10, or 183 of side 224."""


def images_per_batch(pixels: int) -> int:
    """Return the number of images to evaluate together: 1,000, or fewer if they are large."""
    return max(1, min(1000, _PIXELS_PER_BATCH // pixels))
