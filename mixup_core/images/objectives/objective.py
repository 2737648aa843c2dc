"""Objective: base class of functions that a step minimises, one file each; plugins may add more."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from mixup_core.images.objectives.minimised import Minimised
from mixup_core.laws import Law
from mixup_core.problem import Metric
from mixup_core.tree.catalogue import Catalogue
from mixup_core.tree.checked import Checked

if TYPE_CHECKING:
    from mixup_core.images.batch import Batch
    from mixup_core.images.forward import Forward
    from mixup_core.images.losses.loss import Loss


class Objective(Checked, ABC):
    """Computes the value that a step minimises from a mixed batch.

    The file of an objective is imported whenever a study is read, so import torch inside the
    methods.
    """

    __slots__ = ()

    catalogue: ClassVar[Catalogue["Objective"]] = Catalogue(
        "objective", meant={"erm": "plain", "mixup": "plain"}
    )

    tag: ClassVar[str]
    """The objective's name in study files."""
    metrics: ClassVar[Mapping[str, Metric]] = {}
    """Metrics that it records besides the loss, in the order of table columns."""
    has_to_mix: ClassVar[bool] = False
    """True if it needs a law that mixes."""
    is_linear: ClassVar[bool] = False
    """True if it mixes by itself, linearly, so that `mix.operation` has no effect."""

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        """Return the law and the objective in force in a 0-based epoch of `epochs`."""
        del epoch, epochs
        return law, self

    @abstractmethod
    def on(
        self, batch: "Batch", student: "Forward", loss: "Loss", teacher: "Forward | None"
    ) -> Minimised:
        """Return the value to minimise on a batch, and further measurements.

        Args:
            batch: Mixed images with labels and weights.
            student: The network in training.
            loss: Loss of an image.
            teacher: The teacher's network, for objectives that have one.
        """

    def floor(self, mixed_floor: float) -> float | None:
        """Return the infimum of the mean value over all functions; None if it is not known.

        Args:
            mixed_floor: Infimum of the mean loss of the mixed images.
        """
        del mixed_floor
        return None
