"""Augmentations of training images, one per file.

This file registers each of them, so that study files can select it by its tag.
"""

from mixup_core.images.augmentations.augmentation import Augmentation, Unchanged
from mixup_core.images.augmentations.crop import Crop, CropFlip
from mixup_core.images.augmentations.erasing import Erasing
from mixup_core.images.augmentations.random_resized_crop import RandomResizedCrop

Augmentation.catalogue.add(Unchanged, Crop, CropFlip, RandomResizedCrop, Erasing)
