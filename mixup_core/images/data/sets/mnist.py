"""Dataset MNIST: LeCun, Cortes and Burges; and idx, its file format, which others use too."""

import gzip
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from mixup_core.arrays import Ints, np, torchvision
from mixup_core.images.data.facts import DataError, Dataset, DatasetInfo, Images, SplitName
from mixup_core.images.data.sources import download

PREFIXES: Mapping[SplitName, str] = {"train": "train", "test": "t10k"}
NAMES = tuple(
    f"{prefix}-{part}" for prefix in PREFIXES.values() for part in ("images-idx3-ubyte",
                                                                    "labels-idx1-ubyte")
)  # fmt: skip
_HEADER_OF_LABELS = 8
"""Bytes of a file of labels before its first label: type and number of the labels."""
MAX_UNPACKED = 64 * 1024**2
"""Maximum unpacked size in bytes: above the largest file (47 MB), far below a gzip bomb."""


def read(folder: Path, root: Path, split: SplitName, size: int) -> Images:
    """Read images and labels of a split from idx files, whose checksums the caller has verified."""
    mnist, prefix = torchvision.datasets.mnist, PREFIXES[split]
    images = mnist.read_image_file(root / folder / f"{prefix}-images-idx3-ubyte")
    labels = mnist.read_label_file(root / folder / f"{prefix}-labels-idx1-ubyte")
    return Images(pixels=images.unsqueeze(1), labels=labels)


def read_labels(folder: Path, root: Path, split: SplitName) -> Ints:
    """Read the labels of a split, (images,), from a verified idx file, without torch."""
    content = (root / folder / f"{PREFIXES[split]}-labels-idx1-ubyte").read_bytes()
    return np.frombuffer(content, dtype=np.uint8, offset=_HEADER_OF_LABELS).astype(np.int64)


def of_mirrors(folder: Path, mirrors: list[str]) -> dict[str, Callable[[Path], None]]:
    """Return functions that download a dataset of four idx files and unpack them, by mirror URL."""
    return {mirror: partial(_unpack_mirror, mirror, folder) for mirror in mirrors}


def unpack(compressed: Path, folder: Path, staging: Path) -> None:
    """Unpack four gzip archives, the images and labels of both splits."""
    raw = staging / folder
    raw.mkdir(parents=True, exist_ok=True)
    for file in NAMES:
        with gzip.open(compressed / f"{file}.gz") as stream:
            content = stream.read(MAX_UNPACKED + 1)
        if len(content) > MAX_UNPACKED:
            raise DataError(
                f"{file}.gz unpacks to more than {MAX_UNPACKED} bytes, so it is not a file of "
                "the dataset; fetch it again"
            )
        (raw / file).write_bytes(content)


def _unpack_mirror(mirror: str, folder: Path, staging: Path) -> None:
    for file in NAMES:
        download(f"{mirror}{file}.gz", staging / f"{file}.gz")
    unpack(staging, folder, staging)


FOLDER = "MNIST/raw"


DATASET = Dataset(
    # Frozen: each name, size, mean and standard deviation in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name="mnist",
    info=DatasetInfo(
        title="MNIST",
        num_train=60_000,
        num_test=10_000,
        num_classes=10,
        channels=1,
        image_size=28,
        mean=(0.1307,),
        std=(0.3081,),
        smallest_class=5_421,
    ),
    # Digests of the unpacked files; torchvision gives only those of the archives.
    files={
        "train": {
            f"{FOLDER}/train-images-idx3-ubyte": "md5:6bbc9ace898e44ae57da46a324031adb",
            f"{FOLDER}/train-labels-idx1-ubyte": "md5:a25bea736e30d166cdddb491f175f624",
        },
        "test": {
            f"{FOLDER}/t10k-images-idx3-ubyte": "md5:2646ac647ad5339dbf082846283269ea",
            f"{FOLDER}/t10k-labels-idx1-ubyte": "md5:27ae3e4e09519cfbb04c329615203637",
        },
    },
    sources=lambda root: (
        of_mirrors(Path(FOLDER), torchvision.datasets.MNIST.mirrors),
        f"unpack the four archives of MNIST to {root / FOLDER}.",
    ),
    read=partial(read, Path(FOLDER)),
    labels=partial(read_labels, Path(FOLDER)),
)
