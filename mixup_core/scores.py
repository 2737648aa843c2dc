"""Scores: accuracy, balanced accuracy and AUROC of predictions, without torch.

B images, C classes; chances float, labels int64
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Chances = NDArray[np.floating]
Labels = NDArray[np.int64]


_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


def accuracy(chances: Chances, labels: Labels) -> float:
    """Return the share of images whose largest chance or logit is that of the label, in [0, 1]."""
    return float((chances.argmax(1) == labels).mean())


def balanced_accuracy(chances: Chances, labels: Labels) -> float:
    """Return the mean over classes of the accuracy on the images of each, in [0, 1].

    A class without images is left out.
    """
    counts = np.bincount(labels, minlength=chances.shape[1])
    right = np.bincount(labels[chances.argmax(1) == labels], minlength=chances.shape[1])
    return float((right[counts > 0] / counts[counts > 0]).mean())


def auroc(chances: Chances, labels: Labels) -> float | None:
    """Return the mean over classes of the area under the curve of each against the rest.

    The area of a class is the probability that one of its images has a larger chance of the class
    than an image of another class; equal chances count as half. Of two classes both areas are the
    same. None if some class has no image, or all images are of one class.

    Args:
        chances: (images, classes): probabilities, so that images compare.
        labels: (images,).
    """
    counts = np.bincount(labels, minlength=chances.shape[1])
    if (counts == 0).any() or len(counts) < 2:
        return None
    areas = []
    for label, count in enumerate(counts):
        column, others = chances[labels == label, label], np.sort(chances[labels != label, label])
        below, at_most = (np.searchsorted(others, column, side=side) for side in _SIDES)
        areas.append((below.sum() + at_most.sum()) / 2 / (count * len(others)))
    return float(np.mean(areas))
