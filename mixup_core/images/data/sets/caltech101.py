"""Dataset Caltech-101: Fei-Fei, Fergus and Perona 2004; 101 classes, background class left out."""

from pathlib import Path

from mixup_core.arrays import torchvision
from mixup_core.images.data.facts import Dataset, DatasetInfo, Images, SplitName
from mixup_core.images.data.sources import both_splits_in, downloaded, extract, unpacked
from mixup_core.seeding import stream

_ARCHIVE = "caltech101/caltech-101.zip"
_URL = "https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip"
_NUM_TRAIN_PER_CLASS = 30


def _read(root: Path, split: SplitName, size: int) -> Images:
    """Read the images of a split with torchvision; 30 images of each class are for training."""
    with unpacked(root / _ARCHIVE) as folder:
        extract(folder / "caltech-101" / "101_ObjectCategories.tar.gz", folder / "caltech101")
        dataset = torchvision.datasets.Caltech101(folder)
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/mixup_core/images/data/test_sets.py fails.
        rng = stream(0, "caltech101 split")
        first, chosen = 0, []
        for label in range(len(dataset.categories)):
            count = dataset.y.count(label)
            order = first + rng.permutation(count)
            first += count
            train, test = order[:_NUM_TRAIN_PER_CLASS], order[_NUM_TRAIN_PER_CLASS:]
            chosen += sorted((train if split == "train" else test).tolist())
        return Images.of_pictures((dataset[index] for index in chosen), len(chosen), size)


DATASET = Dataset(
    # Frozen: each name, size, mean and standard deviation in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name="caltech101",
    info=DatasetInfo(
        title="Caltech-101",
        num_train=101 * _NUM_TRAIN_PER_CLASS,
        num_test=8_677 - 101 * _NUM_TRAIN_PER_CLASS,
        num_classes=101,
        channels=3,
        image_size=64,
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        smallest_class=_NUM_TRAIN_PER_CLASS,
    ),
    files=both_splits_in(_ARCHIVE, "3138e1922a9193bfa496528edbbc45d0"),
    sources=lambda root: downloaded({_ARCHIVE: _URL}, root),
    read=_read,
)
