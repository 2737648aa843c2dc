"""Gratings of four directions, computed and not downloaded."""

from mixsweep.plugins import Dataset, DatasetInfo, Images


def read(root, split, size):
    """Return gratings of random phase in noise; the class is the direction."""
    import numpy as np

    rng = np.random.default_rng(0 if split == "train" else 1)
    labels = np.arange(400 if split == "train" else 200) % 4
    angles, phases = labels * np.pi / 4, rng.uniform(0, 2 * np.pi, len(labels))
    row, column = np.mgrid[:12, :12]
    along = np.cos(angles)[:, None, None] * column + np.sin(angles)[:, None, None] * row
    waves = 0.5 + 0.25 * np.sin(along + phases[:, None, None])
    pixels = np.clip(waves + rng.normal(0, 0.1, waves.shape), 0, 1) * 255
    return Images.of_arrays(pixels[:, None].astype(np.uint8), labels)


GRATINGS = Dataset(
    name="gratings",
    info=DatasetInfo(
        title="gratings",
        num_train=400,
        num_test=200,
        num_classes=4,
        channels=1,
        image_size=12,
        mean=(0.5,),
        std=(0.2,),
        smallest_class=100,
    ),
    read=read,
)
