"""Objective: what a step minimises; an open choice, one member per file."""

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
    """Computes what a step minimises from a mixed batch.

    The file of an objective is read when a study is: it imports torch where it computes.
    """

    __slots__ = ()

    catalogue: ClassVar[Catalogue["Objective"]] = Catalogue(
        "objective", meant={"erm": "plain", "mixup": "plain"}
    )

    tag: ClassVar[str]
    """Name of the objective in study files."""
    metrics: ClassVar[Mapping[str, Metric]] = {}
    """Metrics that it records in addition to the loss, in the order of columns."""
    has_to_mix: ClassVar[bool] = False
    """True if it needs a law that mixes."""
    is_linear: ClassVar[bool] = False
    """True if it mixes by itself, linearly, so that no other operation has an effect."""

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        """Return the law and the objective that are in force in a 0-based epoch of `epochs`."""
        del epoch, epochs
        return law, self

    @abstractmethod
    def on(
        self, batch: "Batch", student: "Forward", loss: "Loss", teacher: "Forward | None"
    ) -> Minimised:
        """Return the value on a batch whose gradient a step follows, and what is measured."""

    def floor(self, mixed_floor: float) -> float | None:
        """Return the infimum of the mean over all functions; None: it is not known.

        Args:
            mixed_floor: That of the loss of the mixed images.
        """
        del mixed_floor
        return None
