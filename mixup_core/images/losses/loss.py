"""Loss: the loss of an image under its mixed label, one of the dataclasses of this package.

Each has a `tag` and

    per_image(logits, labels, partner_labels, lam)    the loss of each image
    floor(law, labels, partner, batch_size)           the infimum of its mean, if known

A file is read when a study is: it imports torch where it computes.
"""

from mixup_core.images.losses.cross_entropy import CrossEntropy
from mixup_core.images.losses.squared_error import SquaredError

Loss = CrossEntropy | SquaredError
"""Add a member by writing its file and naming it here."""
