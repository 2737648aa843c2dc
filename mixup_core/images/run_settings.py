"""RunSettings: interface of the settings of a run on which its batches and probes depend."""

from typing import Literal, Protocol

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.epoch import Epoch
from mixup_core.seeding import Seeds


class RunSettings(Protocol):
    """Interface of the settings of a run that its batches and probes use.

    `TrainConfig`, the whole configuration, has all of them. Probes cannot import that class,
    because it imports the probes.
    """

    @property
    def data(self) -> DataConfig:
        """Settings of the dataset, its validation images and its augmentation."""

    @property
    def batch_size(self) -> int:
        """Number of images per training step."""

    @property
    def precision(self) -> Literal["float32", "tf32", "bfloat16"]:
        """Number format in which the network computes."""

    @property
    def seeds(self) -> int | Seeds:
        """Seed of the run's random streams; `Seeds` if one of them has a seed of its own."""

    def in_epoch(self, epoch: int) -> Epoch:
        """Return the settings of a 0-based epoch, such as its mixing law and its objective."""
