"""Unchanged: the choice of no augmentation."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.images.augmentations.augmentation import Augmentation


@dataclass(frozen=True, kw_only=True, slots=True)
class Unchanged(Augmentation):
    """No augmentation: uses each image as it is.

    Example:
        In a study file: `data.augment: none`.

        >>> from mixup_core.images.augmentations.unchanged import Unchanged
        >>> Unchanged().changes_images
        False
    """

    tag: ClassVar = "none"
