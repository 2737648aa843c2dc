"""Plain: the loss of mixed images."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mixup_core.images.objectives.minimised import Minimised
from mixup_core.laws import Law
from mixup_core.problem import Metric

if TYPE_CHECKING:
    from mixup_core.images.batches import Batch
    from mixup_core.images.forward import Forward
    from mixup_core.images.losses.loss import Loss
    from mixup_core.images.objectives.objective import Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain:
    """The mean loss of the mixed images: mixup, and ERM under a law that does not mix."""

    tag: ClassVar = "plain"
    metrics: ClassVar[Mapping[str, Metric]] = {}
    has_to_mix: ClassVar = False

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        """Return the law and the objective that are in force in a 0-based epoch of `epochs`."""
        del epoch, epochs
        return law, self

    def on(
        self, batch: "Batch", student: "Forward", loss: "Loss", teacher: "Forward | None"
    ) -> Minimised:
        """Return the mean loss of the mixed images."""
        del teacher
        return Minimised(loss=batch.losses(student(batch.mixed), loss).mean())

    def floor(self, mixed_floor: float) -> float | None:
        """Return the infimum of the mean over all functions, that of the mixed images' loss."""
        return mixed_floor
