"""Minimised: what an objective is on a batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Minimised:
    """The value of an objective on a batch."""

    loss: "Tensor"
    """(), float32: the value whose gradient a step follows."""
    measured: "Mapping[str, Tensor]" = field(default_factory=dict)
    """Further means over the batch, each (), by the name their record has after `train/`."""
