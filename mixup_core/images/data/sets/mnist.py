"""Dataset MNIST: LeCun, Cortes and Burges; handwritten digits."""

from functools import partial
from pathlib import Path

from mixup_core.images.data.facts import Dataset, DatasetInfo
from mixup_core.images.data.sets.idx import of_mirrors, read, read_labels

FOLDER = "MNIST/raw"


def _mirrors() -> list[str]:
    from torchvision.datasets import MNIST  # it imports torch

    return list(MNIST.mirrors)


DATASET = Dataset(
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
        of_mirrors(Path(FOLDER), _mirrors()),
        f"unpack the four archives of MNIST to {root / FOLDER}.",
    ),
    read=partial(read, Path(FOLDER)),
    labels=partial(read_labels, Path(FOLDER)),
)
