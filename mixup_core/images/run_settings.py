"""RunSettings, Planned: the settings of a run, and what is known of an epoch before training."""

from dataclasses import dataclass
from typing import Literal, Protocol

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.facts import DatasetInfo
from mixup_core.images.epoch import Epoch
from mixup_core.images.losses.loss import Loss
from mixup_core.images.objectives.objective import Objective
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
    def objective(self) -> Objective:
        """Objective that the study file names; that of an epoch is `in_epoch(epoch).objective`."""

    @property
    def loss(self) -> Loss:
        """Loss of an image with a mixed label."""

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


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Planned:
    """An epoch of a run as it is known before training, from the settings and the dataset.

    Probes say by it which metrics they record (`Probe.lacks`).
    """

    config: RunSettings
    epoch: int
    """The epoch, 0-based."""
    info: DatasetInfo
    """Sizes and classes of the dataset."""

    @property
    def how(self) -> Epoch:
        """Training settings of the epoch: mixing law, operation, objective."""
        return self.config.in_epoch(self.epoch)

    @property
    def num_images(self) -> int:
        """Number of training images in one epoch."""
        return self.config.data.num_images(self.info)
