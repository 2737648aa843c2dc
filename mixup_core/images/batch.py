"""Batch: the mixed images of one training step, with their labels and the labels' weights."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mixup_core.images.forward import Forward, HiddenMix
from mixup_core.images.losses.loss import Loss


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """A batch of mixed images, with the labels of the images and of their partners."""

    mixed: Tensor
    """Input of the network, (batch, channels, height, width), float32."""
    unmixed: Callable[[], Tensor] | None
    """Function that returns the images before mixing; None: this batch is not mixed."""
    labels: Tensor
    """Labels of the images, (batch,), int64."""
    partner_labels: Tensor
    """Labels of the partners, (batch,), int64."""
    lam: Tensor
    """Weight of `labels`, (batch,), float32, in [0, 1]."""
    is_test: Tensor | None = None
    """True for test images, (batch,), bool; None if the run trains on none (`data.oracle`)."""
    hidden: HiddenMix | None = None
    """Mixing at a hidden layer, or None. If set, `mixed` contains the images before mixing, then
    their partners.
    """

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def images(self) -> Tensor:
        """The images before mixing. They are built on access, since few objectives use them."""
        return self.mixed if self.unmixed is None else self.unmixed()

    def logits(self, network: Forward, after: Tensor | None = None) -> Tensor:
        """Return the logits of the mixed images, (batch, classes).

        With `after`, the result is (further images + batch, classes), further images first.
        """
        images = self.mixed if after is None else torch.cat([after, self.mixed])
        return network(images) if self.hidden is None else network(images, self.hidden)

    def losses(self, logits: Tensor, loss: Loss) -> Tensor:
        """Return the loss of each mixed image, (batch,), from its logits, (batch, classes)."""
        return loss.per_image(logits, self.labels, self.partner_labels, self.lam)
