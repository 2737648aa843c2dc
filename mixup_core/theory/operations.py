"""Operations: ways to mix a pair of points made of patches by the weight lam."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchLinear:
    """Mixup: lam x + (1 - lam) x' for each patch; the label weight is lam."""

    tag: ClassVar = "linear"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchCutMix:
    """Keep each patch with probability lam, else take it from x'; label weight: fraction kept."""

    tag: ClassVar = "cutmix"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchMask:
    """Keep each patch with probability lam, else set it to 0; the label is unchanged."""

    tag: ClassVar = "mask"


PatchOperation = PatchLinear | PatchCutMix | PatchMask
