"""Plain: the default objective, the mean loss of the mixed images."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.images.objectives.objective import Batch, Forward, Loss, Minimised, Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain(Objective):
    """Objective: mean loss of the mixed images. It is mixup, or ERM if the law does not mix.

    Example:
        In a study file: `objective: plain`.

        >>> from mixup_core.images.objectives.plain import Plain
        >>> Plain().floor(0.45)  # the infimum of the mixed loss is that of the objective
        0.45
    """

    tag: ClassVar = "plain"

    def on(
        self, batch: Batch, student: Forward, loss: Loss, teacher: "Forward | None"
    ) -> Minimised:
        del teacher
        return Minimised(loss=batch.losses(batch.logits(student), loss).mean())

    def floor(self, mixed_floor: float) -> float | None:
        return mixed_floor
