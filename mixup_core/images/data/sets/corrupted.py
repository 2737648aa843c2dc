"""CIFAR-10-C and CIFAR-100-C: corrupted test images, five severities of 19 corruptions.

Source: Hendrycks and Dietterich 2019, arXiv:1903.12261, section 3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixup_core.arrays import np
from mixup_core.images.data.facts import DataError, Images, Sources
from mixup_core.images.data.sources import unpacked_archive

CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur",
    "zoom_blur", "snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate",
    "jpeg_compression", "speckle_noise", "gaussian_blur", "spatter", "saturate",
)  # fmt: skip
"""Names of the benchmark's 15 corruptions, then of the four that its authors keep for validation.
"""

CORRUPTED_SPLITS = ("test_corrupted", *(f"test_{name}" for name in CORRUPTIONS))
"""Names of metrics of corrupted test images, before the slash."""

NUM_SEVERITIES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class CorruptedSet:
    """Archive of the corrupted test images of a dataset: CIFAR-10-C or CIFAR-100-C."""

    folder: str
    url: str
    md5: str
    """MD5 of the archive, checked after a download. Digests of its single files are not published.
    """

    def files(self) -> tuple[str, ...]:
        """Return the paths of the unpacked corrupted images, relative to the folder of datasets."""
        return tuple(f"{self.folder}/{name}.npy" for name in (*CORRUPTIONS, "labels"))

    def sources(self, root: Path) -> Sources:
        """Return functions that unpack the corrupted images, by source, and advice."""
        return unpacked_archive(self.url, f"{self.folder}.tar", self.md5, root)


CORRUPTED: Mapping[str, CorruptedSet] = {
    "cifar10": CorruptedSet(
        folder="CIFAR-10-C",
        url="https://zenodo.org/records/2535967/files/CIFAR-10-C.tar",
        md5="56bf5dcef84df0e2308c6dcbcbbd8499",
    ),
    "cifar100": CorruptedSet(
        folder="CIFAR-100-C",
        url="https://zenodo.org/records/3555552/files/CIFAR-100-C.tar",
        md5="11f0ed0f1191edbf9fa23466ae6021d3",
    ),
}
"""Archives of corrupted test images by dataset; `mixsweep data fetch` calls them `cifar10-c` and
`cifar100-c`.
"""


def read_corrupted(
    root: Path, of: CorruptedSet, corruption: str, severity: int | None, num_test: int
) -> Images:
    """Return the test images of CIFAR under one corruption, such as `fog`."""

    def mapped(name: str, shape: tuple[int, ...]) -> Any:
        path = root / of.folder / f"{name}.npy"
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError as error:
            name = next(name for name, other in CORRUPTED.items() if other is of)
            raise DataError(
                f"{path}: not found; get it with `mixsweep data fetch {name}-c`."
            ) from error
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: not a readable NumPy file ({error}).") from error
        if array.shape != shape:
            raise DataError(f"{path}: expected an array of shape {shape}, got {array.shape}.")
        return array

    count = NUM_SEVERITIES * num_test
    pixels, labels = mapped(corruption, (count, 32, 32, 3)), mapped("labels", (count,))
    if pixels.dtype != np.uint8:
        raise DataError(f"{of.folder}/{corruption}.npy: expected uint8, got {pixels.dtype}.")
    first, end = (0, NUM_SEVERITIES) if severity is None else (severity - 1, severity)
    part = slice(first * num_test, end * num_test)
    return Images.of_arrays(pixels[part].transpose(0, 3, 1, 2), labels[part])
