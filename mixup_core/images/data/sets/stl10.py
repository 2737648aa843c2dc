"""Dataset STL-10: Coates, Lee and Ng 2011; only the labelled images."""

from functools import partial
from pathlib import Path

from mixup_core.arrays import torchvision
from mixup_core.images.data.facts import Dataset, DatasetInfo, Images, SplitName
from mixup_core.images.data.sources import published_archive


def _read(root: Path, split: SplitName, size: int) -> Images:
    """Read the images of a split with torchvision, which converts their column order."""
    published = torchvision.datasets.STL10
    # torchvision opens and checks every file in its lists; only files of this split are listed.
    lists = {"train_list": published.train_list[:2], "test_list": []}
    if split == "test":
        lists = {"train_list": [], "test_list": published.test_list}
    dataset = type("STL10", (published,), lists)(root, split=split)
    return Images.of_arrays(dataset.data, dataset.labels)


DATASET = Dataset(
    # Frozen: each name, size, mean and standard deviation in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name="stl10",
    info=DatasetInfo(
        title="STL-10",
        num_train=5_000,
        num_test=8_000,
        num_classes=10,
        channels=3,
        image_size=96,
        mean=(0.4467, 0.4398, 0.4066),
        std=(0.2603, 0.2566, 0.2713),
        smallest_class=500,
    ),
    files={
        "train": {
            "stl10_binary/train_X.bin": "md5:918c2871b30a85fa023e0c44e0bee87f",
            "stl10_binary/train_y.bin": "md5:5a34089d4802c674881badbb80307741",
        },
        "test": {
            "stl10_binary/test_X.bin": "md5:7f263ba9f9e0b06b93213547f721ac82",
            "stl10_binary/test_y.bin": "md5:36f9794fa4beb8a2c72628de14fa638e",
        },
    },
    sources=partial(published_archive, "STL10"),
    read=_read,
)
