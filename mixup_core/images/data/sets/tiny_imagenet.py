"""Dataset Tiny ImageNet: Stanford CS231N, 200 classes, 64 pixels; tested on validation images."""

import io
import zipfile
from pathlib import Path

from mixup_core.arrays import Image
from mixup_core.images.data.facts import Dataset, DatasetInfo, Images, SplitName
from mixup_core.images.data.sources import both_splits_in, downloaded

_ARCHIVE = "tiny-imagenet/tiny-imagenet-200.zip"
_URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
_INSIDE = "tiny-imagenet-200"


def _read(root: Path, split: SplitName, size: int) -> Images:
    """Read the images of a split from the archive; classes are numbered as in `wnids.txt`."""
    with zipfile.ZipFile(root / _ARCHIVE) as archive:
        classes = archive.read(f"{_INSIDE}/wnids.txt").decode().split()
        number = {wnid: label for label, wnid in enumerate(classes)}
        if split == "train":
            names = sorted(
                name
                for name in archive.namelist()
                if name.startswith(f"{_INSIDE}/train/") and name.endswith(".JPEG")
            )
            labelled = [(name, number[name.split("/")[2]]) for name in names]
        else:
            lines = archive.read(f"{_INSIDE}/val/val_annotations.txt").decode().splitlines()
            fields = [line.split("\t") for line in lines]
            labelled = [(f"{_INSIDE}/val/images/{name}", number[wnid]) for name, wnid, *_ in fields]
        pictures = ((Image.open(io.BytesIO(archive.read(name))), label) for name, label in labelled)
        return Images.of_pictures(pictures, len(labelled), size)


DATASET = Dataset(
    # Frozen: each name, size, mean and standard deviation in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name="tiny-imagenet",
    info=DatasetInfo(
        title="Tiny ImageNet",
        num_train=100_000,
        num_test=10_000,
        num_classes=200,
        channels=3,
        image_size=64,
        mean=(0.4802, 0.4481, 0.3975),
        std=(0.2770, 0.2691, 0.2821),
        smallest_class=500,
    ),
    files=both_splits_in(_ARCHIVE, "90528d7ca1a48142e341f4ef8d21d0de"),
    sources=lambda root: downloaded({_ARCHIVE: _URL}, root),
    read=_read,
)
