"""Digits: the 8 x 8 handwritten digits that come with scikit-learn."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from mixup_core.images.data.facts import Bundle, DataError, Dataset, DatasetInfo, SplitName

if TYPE_CHECKING:
    from mixup_core.images.data.pixels import Images


def _file() -> Path | None:
    """Return the data file of the installed scikit-learn; None if it is not installed."""
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"


def _read(root: Path, split: SplitName, size: int) -> "Images":
    """Read the digits of a split, with pixels 0..16 multiplied by 15.

    Training and test images are separated once, by a fixed permutation.

    Raises:
        DataError: If scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise DataError(f"digits: install scikit-learn, which contains them ({error}).") from error

    import numpy as np

    from mixup_core.images.data.pixels import Images
    from mixup_core.seeding import stream

    del root, size
    info, bundle = DATASET.info, load_digits()
    order = stream(0, "digits split").permutation(info.num_train + info.num_test)
    chosen = order[: info.num_train] if split == "train" else order[info.num_train :]
    pixels = (15 * bundle.images[chosen]).astype(np.uint8)
    return Images.of_arrays(pixels[:, None], bundle.target[chosen])


DATASET = Dataset(
    name="digits",
    info=DatasetInfo(
        title="digits",
        num_train=1_437,
        num_test=360,
        num_classes=10,
        channels=1,
        image_size=8,
        mean=(0.5,),
        std=(0.5,),
        smallest_class=135,
    ),
    files={},
    sources=lambda _: ({}, ""),
    read=_read,
    bundle=Bundle(package="scikit-learn", file=_file),
)
