"""Subject: what probes look at after an epoch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from mixup_core.images.batch import Batch
from mixup_core.images.batches import Draws, batches
from mixup_core.images.config import TrainConfig
from mixup_core.images.epoch import Epoch
from mixup_core.images.evaluation_size import images_per_batch
from mixup_core.images.forward import Forward, HiddenMix, forward
from mixup_core.images.losses.loss import Loss
from mixup_core.images.saliency import gradient_norms
from mixup_core.images.views import EvaluationImages, TrainingImages


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Subject:
    """The state of training that probes read after an epoch, and never change."""

    config: TrainConfig
    epoch: int
    """0-based, just finished."""
    network: nn.Module
    """In evaluation mode."""
    loss: Loss
    """Loss of an image, which training minimises."""
    images: TrainingImages
    held_out: Mapping[str, EvaluationImages]
    """`val` and `test`, where the run has them."""
    teacher: Forward | None = None
    evaluated: Mapping[tuple[str, str], Tensor] = field(default_factory=dict)
    """Logits that were evaluated after this epoch, by split (`val`, `test`, not corrupted) and
    network (as in `TrainingState.networks`); empty where none were."""
    _known: dict[float | None, tuple[Tensor, Tensor]] = field(
        default_factory=dict, init=False, repr=False
    )
    """Cache of `outputs`, which several probes use."""

    @property
    def how(self) -> Epoch:
        """The settings that decided the epoch."""
        return self.config.in_epoch(self.epoch)

    def logits(self, images: Tensor, hidden: HiddenMix | None = None) -> Tensor:
        """Return the network's logits of some images, float32."""
        return forward(self.network, images, hidden, precision=self.config.precision)

    def outputs(self, gamma: float | None = None) -> tuple[Tensor, Tensor]:
        """Return logits, (images, classes), and labels of all training images, unmixed.

        Args:
            gamma: As for `unmixed`.
        """
        if gamma not in self._known:
            self._known[gamma] = self.asked(gamma)
        return self._known[gamma]

    @torch.no_grad()
    def asked(self, gamma: float | None = None) -> tuple[Tensor, Tensor]:
        """Return the network's logits of all training images, and their labels."""
        parts = [(self.logits(images), labels) for images, labels in self.unmixed(gamma)]
        return torch.cat([part for part, _ in parts]), torch.cat([labels for _, labels in parts])

    def unmixed(self, gamma: float | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield all training images with their labels, some at a time.

        Args:
            gamma: Scale of the own view in concatenated ones; None draws one for each image.
        """
        scaling = Draws.for_probing(self.config, self.epoch, self.how, self.images).scaling[0]
        if gamma is not None:
            scaling = torch.full_like(scaling, gamma)
        step = images_per_batch(self.images.pixels.shape[1:].numel())
        for chosen in torch.split(torch.arange(len(scaling), device=scaling.device), step):
            yield self.images.batch(chosen, scaling[chosen]), self.images.labels[chosen]

    def mixed(self, draw: int = 0) -> Iterator[Batch]:
        """Yield all training images mixed by the law in force, drawn for probes.

        Args:
            draw: Number of the draw; equal numbers give equal partners and weights.
        """
        draws = Draws.for_probing(self.config, self.epoch, self.how, self.images, draw)
        saliency = partial(gradient_norms, self.network, self.loss, self.config.precision)
        return batches(self.images, draws, self.how, saliency)

    def measured(self) -> dict[str, float]:
        """Return the values of all probes that are due after the epoch."""
        found: dict[str, float] = {}
        for probe in self.config.probes:
            if (self.epoch + 1) % (probe.every or self.config.eval_every) == 0:
                found |= probe.measure(self)
        return found
