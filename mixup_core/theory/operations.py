"""Operations: ways to mix two points that consist of patches, with the mixing weight lam."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchLinear:
    """Mixup: lam x + (1 - lam) x' for a point x and its partner x'; the label weight is lam."""

    tag: ClassVar = "linear"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchCutMix:
    """CutMix: keeps each patch of a point with probability lam, else shows the partner's patch.

    The label weight is the fraction of patches kept.
    """

    tag: ClassVar = "cutmix"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchMask:
    """Keeps each patch of a point with probability lam, sets others to 0, and keeps the label."""

    tag: ClassVar = "mask"


PatchOperation = PatchLinear | PatchCutMix | PatchMask
