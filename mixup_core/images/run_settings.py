"""RunSettings: the settings of a run on which its batches and its probes depend."""

from typing import Literal, Protocol

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.epoch import Epoch
from mixup_core.seeding import Seeds


class RunSettings(Protocol):
    """Part of `TrainConfig`, so that batches and probes need not import that class.

    `TrainConfig` has probes, and probes use batches.
    """

    @property
    def data(self) -> DataConfig:
        """Dataset, its split and its augmentation."""

    @property
    def batch_size(self) -> int:
        """Number of images per step."""

    @property
    def precision(self) -> Literal["float32", "tf32", "bfloat16"]:
        """Arithmetic of the network."""

    @property
    def seeds(self) -> int | Seeds:
        """Seed of the run's random streams."""

    def in_epoch(self, epoch: int) -> Epoch:
        """Return the settings of a 0-based epoch, such as its mixing law and its objective."""
