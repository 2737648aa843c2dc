"""Dataset digits: the 8 x 8 handwritten digits that come with scikit-learn."""

import importlib.util
from pathlib import Path

from mixup_core.arrays import Floats, Ints, np
from mixup_core.images.data.facts import Bundle, DataError, Dataset, DatasetInfo, Images, SplitName
from mixup_core.seeding import stream


def _file() -> Path | None:
    """Return the data file of the installed scikit-learn; None if it is not installed."""
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"


def _rows(split: SplitName) -> Floats:
    """Return the rows of a split's images in the file: 64 pixels, 0 to 16, and the label."""
    if (file := _file()) is None:
        raise DataError(
            "the dataset digits needs scikit-learn, which contains it: pip install scikit-learn."
        )
    info = DATASET.info
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    order = stream(0, "digits split").permutation(info.num_train + info.num_test)
    chosen = order[: info.num_train] if split == "train" else order[info.num_train :]
    rows: Floats = np.loadtxt(file, delimiter=",")[chosen]
    return rows


def _read(root: Path, split: SplitName, size: int) -> Images:
    """Read the digits of a split, with pixels 0..16 multiplied by 15."""
    rows = _rows(split)
    pixels = (15 * rows[:, :-1]).astype(np.uint8)
    return Images.of_arrays(pixels.reshape(-1, 1, 8, 8), rows[:, -1])


def _read_labels(root: Path, split: SplitName) -> Ints:
    """Read the labels of a split without torch."""
    return _rows(split)[:, -1].astype(np.int64)


DATASET = Dataset(
    # Frozen: each name, size, mean and standard deviation in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
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
