"""Datasets CIFAR-10 and CIFAR-100: Krizhevsky 2009, Learning Multiple Layers of Features."""

from functools import partial
from pathlib import Path

from mixup_core.arrays import torchvision
from mixup_core.images.data.facts import Dataset, DatasetInfo, Images, SplitName
from mixup_core.images.data.sources import published_archive


def _read(name: str, root: Path, split: SplitName, size: int) -> Images:
    """Read the images of a split from pickles; the caller must have verified their md5."""
    published = getattr(torchvision.datasets, name)
    # torchvision opens and checks every file in its lists; the list of the other split is emptied.
    other = {"train": "test_list", "test": "train_list"}[split]
    dataset = type(name, (published,), {other: []})(root, train=split == "train")
    return Images.of_arrays(dataset.data.transpose(0, 3, 1, 2), dataset.targets)


_META_10 = {"cifar-10-batches-py/batches.meta": "md5:5ff9c542aee3614f3951f8cda6e48888"}
_META_100 = {"cifar-100-python/meta": "md5:7973b15100ade9c7d40fb424638fde48"}

_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip

CIFAR10 = Dataset(
    # Frozen: each name, size, mean and standard deviation in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name="cifar10",
    info=DatasetInfo(
        title="CIFAR-10",
        num_train=50_000,
        num_test=10_000,
        num_classes=10,
        channels=3,
        image_size=32,
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2023, 0.1994, 0.2010),
        smallest_class=5_000,
        classes=_CLASSES,
    ),
    files={
        "train": {
            "cifar-10-batches-py/data_batch_1": "md5:c99cafc152244af753f735de768cd75f",
            "cifar-10-batches-py/data_batch_2": "md5:d4bba439e000b95fd0a9bffe97cbabec",
            "cifar-10-batches-py/data_batch_3": "md5:54ebc095f3ab1f0389bbae665268c751",
            "cifar-10-batches-py/data_batch_4": "md5:634d18415352ddfa80567beed471001a",
            "cifar-10-batches-py/data_batch_5": "md5:482c414d41f54cd18b22e5b47cb7c3cb",
            **_META_10,
        },
        "test": {
            "cifar-10-batches-py/test_batch": "md5:40351d587109b95175f43aff81a1287e",
            **_META_10,
        },
    },
    sources=partial(published_archive, "CIFAR10"),
    read=partial(_read, "CIFAR10"),
)

CIFAR100 = Dataset(
    name="cifar100",
    info=DatasetInfo(
        title="CIFAR-100",
        num_train=50_000,
        num_test=10_000,
        num_classes=100,
        channels=3,
        image_size=32,
        mean=(0.5071, 0.4867, 0.4408),
        std=(0.2675, 0.2565, 0.2761),
        smallest_class=500,
    ),
    files={
        "train": {"cifar-100-python/train": "md5:16019d7e3df5f24257cddd939b257f8d", **_META_100},
        "test": {"cifar-100-python/test": "md5:f0ef6b0ae62326f3e7ffdfab6717acfc", **_META_100},
    },
    sources=partial(published_archive, "CIFAR100"),
    read=partial(_read, "CIFAR100"),
)
