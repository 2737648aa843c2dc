"""El2n: the EL2N score, a distance of the predictions from the labels."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import functional
from mixup_core.images.probes.probe import Probe, Subject
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class El2n(Probe):
    """Mean over the training images of the Euclidean distance between softmax and one-hot label.

    Source: Paul et al. 2021, arXiv:2107.07075, definition 2.

    Example:
        In a study file: `probes: [el2n]`.

        >>> from types import SimpleNamespace
        >>> import torch
        >>> from mixup_core.images.probes.el2n import El2n
        >>> logits, labels = torch.zeros(1, 2), torch.tensor([0])  # softmax is [1/2, 1/2]
        >>> found = El2n().measure(SimpleNamespace(outputs=lambda: (logits, labels)))
        >>> round(found["train/el2n"], 4)  # sqrt(1/2)
        0.7071
    """

    # Frozen: each `tag` and metric name in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "el2n"
    metrics: ClassVar = {
        "train/el2n": Metric(label="EL2N score, training images", least=0.0, most=2**0.5)
    }

    def measure(self, subject: Subject) -> dict[str, float]:
        logits, labels = subject.outputs()
        distance = logits.double().softmax(1) - functional.one_hot(labels, logits.shape[1])
        return {"train/el2n": float(distance.norm(dim=1).mean())}
