"""Minimised: the result of evaluating an objective on a batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mixup_core.arrays import Tensor


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Minimised:
    """The result of evaluating an objective on a batch: the loss and other measurements.

    Example:
        >>> import torch
        >>> from mixsweep.plugins import Minimised
        >>> kept = {"kept_fraction": torch.tensor(0.75)}
        >>> result = Minimised(loss=torch.tensor(0.5), measured=kept)
        >>> list(result.measured)  # recorded as train/kept_fraction
        ['kept_fraction']
    """

    loss: "Tensor"
    """The value to minimise, (), float32."""
    measured: "Mapping[str, Tensor]" = field(default_factory=dict)
    """Other means over the batch, each (), by name; recorded as `train/NAME`."""
