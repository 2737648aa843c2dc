"""Minimised: value of an objective on a batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Minimised:
    """The value of an objective on a batch."""

    loss: "Tensor"
    """The value to minimise, (), float32."""
    measured: "Mapping[str, Tensor]" = field(default_factory=dict)
    """Further means over the batch, each (); recorded as `train/NAME`."""
