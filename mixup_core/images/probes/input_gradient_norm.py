"""InputGradientNorm: how steeply the loss changes around held-out images."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import torch
from mixup_core.images.probes.probe import Probe, Subject
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class InputGradientNorm(Probe):
    """Mean norm of the loss gradient with respect to the pixels, on validation and test images.

    Example:
        In a study file: `probes: [input-gradient-norm]`.

        >>> from mixup_core.images.probes.input_gradient_norm import InputGradientNorm
        >>> list(InputGradientNorm().metrics)
        ['test/input_gradient_norm', 'val/input_gradient_norm']
    """

    tag: ClassVar = "input-gradient-norm"
    metrics: ClassVar = {
        "test/input_gradient_norm": Metric(label="input-gradient norm, test images", least=0.0),
        "val/input_gradient_norm": Metric(
            label="input-gradient norm, validation images", least=0.0
        ),
    }

    def measure(self, subject: Subject) -> dict[str, float]:
        found = {}
        for split, images in subject.held_out.items():
            norms = []
            for part in images.parts:
                inputs, labels = images[part].requires_grad_(), images.labels[part]
                lam = torch.ones(len(labels), device=labels.device)
                losses = subject.loss.per_image(subject.logits(inputs), labels, labels, lam)
                (gradient,) = torch.autograd.grad(losses.sum(), inputs)
                norms.append(gradient.flatten(1).norm(dim=1).double())
            found[f"{split}/input_gradient_norm"] = float(torch.cat(norms).mean())
        return found
