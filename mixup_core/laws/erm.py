"""Erm: the law of training without mixing."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.laws.law import ConstantLaw


@dataclass(frozen=True, kw_only=True, slots=True)
class Erm(ConstantLaw):
    """No mixing: lam = 1 always (empirical risk minimisation, ERM)."""

    tag: ClassVar = "erm"
    constant: ClassVar = 1.0

    @property
    def caption(self) -> str:
        """Name of this law in captions: `no mixing`."""
        return "no mixing"
