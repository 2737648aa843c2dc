"""Dataset DTD, describable textures: Cimpoi et al. 2014, arXiv:1311.3618; first of ten splits."""

from itertools import chain
from pathlib import Path

from mixup_core.arrays import torchvision
from mixup_core.images.data.facts import Dataset, DatasetInfo, Images, SplitName
from mixup_core.images.data.sources import both_splits_in, downloaded, unpacked

_ARCHIVE = "dtd/dtd-r1.0.1.tar.gz"


def _read(root: Path, split: SplitName, size: int) -> Images:
    """Read the images of a split with torchvision; `train` and `val` are both used for training."""
    with unpacked(root / _ARCHIVE) as folder:
        (folder / "dtd").rename(folder / "archive")
        (folder / "dtd").mkdir()
        (folder / "archive").rename(folder / "dtd" / "dtd")
        wanted = ("train", "val") if split == "train" else ("test",)
        parts = [torchvision.datasets.DTD(folder, split=part) for part in wanted]
        pictures = chain.from_iterable((part[i] for i in range(len(part))) for part in parts)
        return Images.of_pictures(pictures, sum(map(len, parts)), size)


DATASET = Dataset(
    # Frozen: each name, size, mean and standard deviation in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name="dtd",
    info=DatasetInfo(
        title="DTD",
        num_train=3_760,
        num_test=1_880,
        num_classes=47,
        channels=3,
        image_size=64,
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        smallest_class=80,
    ),
    files=both_splits_in(_ARCHIVE, "fff73e5086ae6bdbea199a49dfb8a4c1"),
    sources=lambda root: downloaded({_ARCHIVE: torchvision.datasets.DTD._URL}, root),
    read=_read,
)
