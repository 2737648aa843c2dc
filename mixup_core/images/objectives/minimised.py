"""Minimised: the result of evaluating an objective on a batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Minimised:
    """The result of evaluating an objective on a batch: the loss and other measurements."""

    loss: "Tensor"
    """The value to minimise, (), float32."""
    measured: "Mapping[str, Tensor]" = field(default_factory=dict)
    """Other means over the batch, each (), by name; recorded as `train/NAME`."""
