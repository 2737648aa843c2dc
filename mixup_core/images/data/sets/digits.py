"""Dataset digits: the 8 x 8 handwritten digits that come with scikit-learn."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

import importlib.util
from pathlib import Path

from mixup_core.arrays import Ints, np
from mixup_core.images.data.facts import Bundle, DataError, Dataset, DatasetInfo, Images, SplitName
from mixup_core.seeding import stream

_COLUMN_OF_LABELS = 64
"""Column of the label in scikit-learn's file; the pixels are before it."""
_MISSING = "the dataset digits needs scikit-learn, which contains it: pip install scikit-learn"


def _file() -> Path | None:
    """Return the data file of the installed scikit-learn; None if it is not installed."""
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"


def _read(root: Path, split: SplitName, size: int) -> Images:
    """Read the digits of a split, with pixels 0..16 multiplied by 15."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise DataError(f"{_MISSING} ({error}).") from error

    bundle, chosen = load_digits(), _chosen(split)
    pixels = (15 * bundle.images[chosen]).astype(np.uint8)
    return Images.of_arrays(pixels[:, None], bundle.target[chosen])


def _read_labels(root: Path, split: SplitName) -> Ints:
    """Read the labels of a split from the file of scikit-learn, without importing it."""
    if (file := _file()) is None:
        raise DataError(f"{_MISSING}.")
    labels = np.loadtxt(file, delimiter=",", usecols=_COLUMN_OF_LABELS).astype(np.int64)
    return labels[_chosen(split)]


def _chosen(split: SplitName) -> Ints:
    """Return the indices of a split's images in the file."""
    info = DATASET.info
    order = stream(0, "digits split").permutation(info.num_train + info.num_test)
    return order[: info.num_train] if split == "train" else order[info.num_train :]


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
    read=_read,
    labels=_read_labels,
    bundle=Bundle(package="scikit-learn", file=_file),
)
