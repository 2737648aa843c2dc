"""Subject: the network and images that probes measure, after an epoch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from mixup_core.images.batches import Draws, batches
from mixup_core.images.data.facts import images_per_batch
from mixup_core.images.epoch import Planned
from mixup_core.images.forward import Batch, Forward, HiddenMix, forward, gradient_norms
from mixup_core.images.losses import Loss
from mixup_core.images.views import EvaluationImages, TrainingImages


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Subject(Planned):
    """Network and images after an epoch, given to probes, which must not modify them."""

    network: nn.Module
    """The network in evaluation mode."""
    images: TrainingImages
    held_out: Mapping[str, EvaluationImages]
    """Validation and test images as `val` and `test`, if the run has them; not corrupted ones."""
    teacher: Forward | None = None
    evaluated: Mapping[tuple[str, str], Tensor] = field(default_factory=dict)
    """Logits of this epoch's evaluation, by (split, network): split is `val` or `test`, network ""
    or, for averaged weights, "_averaged". Empty if the epoch had no evaluation.
    """
    _known: dict[float | None, tuple[Tensor, Tensor]] = field(
        default_factory=dict, init=False, repr=False
    )
    """Cache of results of `asked`, by gamma, because several probes use them."""

    @property
    def loss(self) -> Loss:
        """Loss function of an image, as in training."""
        return self.config.loss

    def logits(self, images: Tensor, hidden: HiddenMix | None = None) -> Tensor:
        """Return the network's logits of some images, (images, classes), float32."""
        return forward(self.network, images, hidden, precision=self.config.precision)

    def outputs(self, gamma: float | None = None) -> tuple[Tensor, Tensor]:
        """Return logits, (images, classes), and labels of all training images, unmixed.

        They are copies of what the network has computed once.
        """
        if gamma not in self._known:
            self._known[gamma] = self.asked(gamma)
        logits, labels = self._known[gamma]
        return logits.clone(), labels.clone()

    @torch.no_grad()
    def asked(self, gamma: float | None = None) -> tuple[Tensor, Tensor]:
        """Compute what `outputs` returns, without its cache."""
        parts = [(self.logits(images), labels) for images, labels in self.unmixed(gamma)]
        return torch.cat([part for part, _ in parts]), torch.cat([labels for _, labels in parts])

    def unmixed(self, gamma: float | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield all training images with their labels, in batches, unmixed."""
        scaling = Draws.for_probing(self.config, self.epoch, self.images).scaling[0]
        if gamma is not None:
            scaling = torch.full_like(scaling, gamma)
        step = images_per_batch(self.images.pixels.shape[1:].numel())
        for chosen in torch.split(torch.arange(len(scaling), device=scaling.device), step):
            yield self.images.batch(chosen, scaling[chosen]), self.images.labels[chosen]

    def mixed(self, draw: int = 0) -> Iterator[Batch]:
        """Yield all training images in batches, mixed as in this epoch but with other random draws.

        Args:
            draw: Number of the draw; the same number gives the same partners and weights.
        """
        draws = Draws.for_probing(self.config, self.epoch, self.images, draw)
        saliency = partial(gradient_norms, self.network, self.loss, self.config.precision)
        return batches(self.images, draws, saliency)
