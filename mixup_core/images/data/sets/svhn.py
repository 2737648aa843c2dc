"""Dataset SVHN, cropped digits: Netzer et al. 2011; without its 531,131 extra images."""

from pathlib import Path

from mixup_core.arrays import torchvision
from mixup_core.images.data.facts import Dataset, DatasetInfo, Images, Sources, SplitName
from mixup_core.images.data.sources import downloaded

_FOLDER = "svhn"


def _sources(root: Path) -> Sources:
    lists = torchvision.datasets.SVHN.split_list
    wanted = (lists["train"], lists["test"])
    return downloaded({f"{_FOLDER}/{name}": url for url, name, _ in wanted}, root)


def _read(root: Path, split: SplitName, size: int) -> Images:
    """Read the images of a split with torchvision, which changes the label 10 (digit 0) to 0."""
    dataset = torchvision.datasets.SVHN(root / _FOLDER, split=split)
    return Images.of_arrays(dataset.data, dataset.labels)


DATASET = Dataset(
    # Frozen: each name, size, mean and standard deviation in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name="svhn",
    info=DatasetInfo(
        title="SVHN",
        num_train=73_257,
        num_test=26_032,
        num_classes=10,
        channels=3,
        image_size=32,
        mean=(0.4377, 0.4438, 0.4728),
        std=(0.1980, 0.2010, 0.1970),
        smallest_class=4_659,
    ),
    files={
        "train": {f"{_FOLDER}/train_32x32.mat": "md5:e26dedcc434d2e4c54c9b2d4a06d8373"},
        "test": {f"{_FOLDER}/test_32x32.mat": "md5:eb5a983be6a315427106f1b164d9cef3"},
    },
    sources=_sources,
    read=_read,
)
