"""ClassWeights: ways to weight the classes in the loss.

Each way is a dataclass with a `tag` and

    of(counts)    weight of each class, from its number of training images
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mixup_core.config.checked import Checked
from mixup_core.config.limits import NonNegative
from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class Balanced:
    """Weights by which every class contributes equally, whatever its number of images.

        weight of class k = images / (classes * images of class k)

    The counts are those of the images that the run trains on, with labels after label noise. The
    mean weight of an image is 1. Classes without images are not counted and have weight 0.

    Source: King and Zeng 2001, Logistic regression in rare events data; as in scikit-learn.

    Example:
        In a study file: `class_weights: balanced`.

        >>> from mixup_core.images.losses.class_weights import Balanced
        >>> Balanced().of([10, 10, 40])
        (2.0, 2.0, 0.5)
    """

    tag: ClassVar = "balanced"

    def of(self, counts: Sequence[int]) -> tuple[float, ...]:
        """Return the weight of each class in the loss, from its number of training images."""
        total, present = sum(counts), sum(count > 0 for count in counts)
        return tuple(total / (present * count) if count else 0.0 for count in counts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Given(Checked):
    """Weights given in the study file. They are not rescaled; their mean need not be 1.

    Example:
        In a study file: `class_weights: {given: [1, 1, 1, 1, 1, 1, 1, 1, 1, 3]}`.

        >>> from mixup_core.images.losses.class_weights import Given
        >>> Given(values=(1.0, 3.0)).of([30, 10])
        (1.0, 3.0)
    """

    tag: ClassVar = "given"

    values: tuple[NonNegative, ...]
    """Weight of each class, in the order of the classes; at least one is positive."""

    def check(self) -> None:
        """Check that at least one weight is positive.

        Raises:
            RuleError: If all weights are 0.
        """
        require(sum(self.values) > 0, "sum(values) > 0", self, "values")

    def of(self, counts: Sequence[int]) -> tuple[float, ...]:
        """Return the weight of each class in the loss, as given; `counts` is not used."""
        del counts
        return self.values


ClassWeights = Balanced | Given
"""Union of all kinds of class weights. To add one, write its class and add it here."""
