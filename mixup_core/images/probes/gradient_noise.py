"""GradientNoise: spread of the batches' gradients around their mean."""

import math
from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import torch
from mixup_core.images.probes.gradient_norm import batch_gradients
from mixup_core.images.probes.probe import Planned, Probe, Subject
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class GradientNoise(Probe):
    """Root mean squared distance of a batch's gradient from the mean over all batches.

    The gradients are those of the epoch's objective, for one new draw of partners and weights, so
    that under mixup the noise of the draws is included. The sum of squares over the batches is
    divided by their number minus 1.

    Source: slides on data valuation for mixup, where it is called sigma.

    Example:
        In a study file: `probes: [gradient-noise]`.

        >>> from mixup_core.images.probes.gradient_noise import GradientNoise
        >>> list(GradientNoise().metrics)
        ['train/gradient_noise']
    """

    tag: ClassVar = "gradient-noise"
    metrics: ClassVar = {
        "train/gradient_noise": Metric(label="standard deviation of the batch gradient", least=0.0)
    }

    def lacks(self, planned: Planned, metric: str) -> str | None:
        del metric
        has_more = planned.num_images > planned.config.batch_size
        return None if has_more else "an epoch has a single batch; set a smaller batch_size"

    def measure(self, subject: Subject) -> dict[str, float]:
        squares, total, count = torch.zeros((), dtype=torch.float64), torch.zeros(1), 0
        for _, parts in batch_gradients(subject):
            gradient = torch.cat([part.flatten() for part in parts]).double()
            squares, total = (
                squares.to(gradient) + gradient @ gradient,
                total.to(gradient) + gradient,
            )
            count += 1
        spread = float(squares - total @ total / count) / (count - 1)
        return {"train/gradient_noise": math.sqrt(max(0.0, spread))}
