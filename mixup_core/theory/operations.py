"""Operations: ways to mix two points that consist of patches, by the weight lam."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchLinear:
    """Mixup: lam x + (1 - lam) x' for each patch; the label weight is lam."""

    tag: ClassVar = "linear"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchCutMix:
    """Takes each patch from the point with probability lam, else from its partner.

    The label weight is the fraction of patches taken from the point.
    """

    tag: ClassVar = "cutmix"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchMask:
    """Keeps each patch with probability lam, else sets it to 0; the label is unchanged."""

    tag: ClassVar = "mask"


PatchOperation = PatchLinear | PatchCutMix | PatchMask
