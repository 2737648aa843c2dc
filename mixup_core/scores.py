"""Scores: accuracy, balanced accuracy and AUROC of predictions, without torch.

Predictions are float arrays of shape (images, classes); labels are int64 of shape (images,).
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Chances = NDArray[np.floating]
Labels = NDArray[np.int64]


_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


def accuracy(chances: Chances, labels: Labels) -> float:
    """Return the share of images whose label has the largest probability or logit, in [0, 1]."""
    return float((chances.argmax(1) == labels).mean())


def balanced_accuracy(chances: Chances, labels: Labels) -> float:
    """Return the mean of the accuracies on the images of each class, in [0, 1].

    A class without images is left out.
    """
    counts = np.bincount(labels, minlength=chances.shape[1])
    right = np.bincount(labels[chances.argmax(1) == labels], minlength=chances.shape[1])
    return float((right[counts > 0] / counts[counts > 0]).mean())


def auroc(chances: Chances, labels: Labels) -> float | None:
    """Return the mean over classes of the one-against-rest area under the ROC curve, in [0, 1].

    The area of a class is the probability that one of its images gets a larger probability for the
    class than an image of another class; ties count as half. With two classes, both areas are
    equal. The result is None if some class has no image, or all images are of one class.
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
