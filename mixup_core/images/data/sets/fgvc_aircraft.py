"""Dataset FGVC-Aircraft, 100 variants: Maji et al. 2013, arXiv:1306.5151."""

from pathlib import Path

from mixup_core.arrays import torchvision
from mixup_core.images.data.facts import Dataset, DatasetInfo, Images, SplitName
from mixup_core.images.data.sources import both_splits_in, downloaded, unpacked

_ARCHIVE = "fgvc-aircraft/fgvc-aircraft-2013b.tar.gz"
_BANNER = 20
"""Number of rows at the bottom of each image that show the photographer's name. The authors of the
dataset ask to remove them.
"""


def _read(root: Path, split: SplitName, size: int) -> Images:
    """Read the images of a split with torchvision: `trainval` for training, `test` for testing."""
    with unpacked(root / _ARCHIVE) as folder:
        wanted = {"train": "trainval", "test": "test"}[split]
        dataset = torchvision.datasets.FGVCAircraft(folder, split=wanted)
        pictures = (
            (image.crop((0, 0, image.width, image.height - _BANNER)), label)
            for image, label in (dataset[index] for index in range(len(dataset)))
        )
        return Images.of_pictures(pictures, len(dataset), size)


DATASET = Dataset(
    # Frozen: each name, size, mean and standard deviation in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name="fgvc-aircraft",
    info=DatasetInfo(
        title="FGVC-Aircraft",
        num_train=6_667,
        num_test=3_333,
        num_classes=100,
        channels=3,
        image_size=64,
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        smallest_class=66,
    ),
    files=both_splits_in(_ARCHIVE, "d4acdd33327262359767eeaa97a4f732"),
    sources=lambda root: downloaded({_ARCHIVE: torchvision.datasets.FGVCAircraft._URL}, root),
    read=_read,
)
