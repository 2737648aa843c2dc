"""Augmentations of training images, one per file.

This file registers each of them, so that study files can select it by its tag.
"""

from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.augmentations.crop import Crop, CropFlip
from mixup_core.images.augmentations.erasing import Erasing
from mixup_core.images.augmentations.random_resized_crop import RandomResizedCrop
from mixup_core.images.augmentations.unchanged import Unchanged

Augmentation.catalogue.add(Unchanged, Crop, CropFlip, RandomResizedCrop, Erasing)
