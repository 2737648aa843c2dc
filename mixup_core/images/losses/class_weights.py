"""ClassWeights: the weight of each class in the loss, one of the dataclasses here.

Each has a `tag` and

    of(counts)    the weight of each class, from its number of training images
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mixup_core.rules import require
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import NonNegative


@dataclass(frozen=True, kw_only=True, slots=True)
class Balanced:
    """Weights by which every class counts alike, whatever its number of images.

        weight of class k = images / (classes * images of class k)

    The images are those that the run trains on, with their labels after label noise. Their mean
    weight is 1. Classes without an image are not counted and have weight 0.

    Source: King and Zeng 2001, Logistic regression in rare events data; as in scikit-learn.
    """

    tag: ClassVar = "balanced"

    def of(self, counts: Sequence[int]) -> tuple[float, ...]:
        """Return the weight of each class, from its number of training images."""
        total, present = sum(counts), sum(count > 0 for count in counts)
        return tuple(total / (present * count) if count else 0.0 for count in counts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Given(Checked):
    """Weights that the study file gives. They are used as they are: their mean need not be 1."""

    tag: ClassVar = "given"

    values: tuple[NonNegative, ...]
    """Weight of each class, in the order of the classes; one at least is above 0."""

    def check(self) -> None:
        """Check the rules that join several fields.

        Raises:
            RuleError: If no class has a weight above 0.
        """
        require(sum(self.values) > 0, "sum(values) > 0", self, "values")

    def of(self, counts: Sequence[int]) -> tuple[float, ...]:
        """Return the weights as they are given."""
        del counts
        return self.values


ClassWeights = Balanced | Given
"""Add a member by writing its class and naming it here."""
