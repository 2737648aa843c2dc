"""Operations: what is done with the weight lam of a pair of points made of patches."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchLinear:
    """Mixup: lam x + (1 - lam) x' patch by patch, label weight lam."""

    tag: ClassVar = "linear"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchCutMix:
    """Each patch is kept with probability lam, else taken from x'; label weight: the share kept."""

    tag: ClassVar = "cutmix"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchMask:
    """Each patch is kept with probability lam, else set to 0; the label stays."""

    tag: ClassVar = "mask"


PatchOperation = PatchLinear | PatchCutMix | PatchMask
