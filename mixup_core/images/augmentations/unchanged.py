"""Unchanged: the choice of no augmentation."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.images.augmentations.augmentation import Augmentation


@dataclass(frozen=True, kw_only=True, slots=True)
class Unchanged(Augmentation):
    """No augmentation: uses each image as it is."""

    tag: ClassVar = "none"
