"""Erm: the law of training without mixing."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.laws.law import ConstantLaw


@dataclass(frozen=True, kw_only=True, slots=True)
class Erm(ConstantLaw):
    """No mixing: lam = 1 always (empirical risk minimisation, ERM).

    Example:
        In a study file: `mix.law: erm`.

        >>> from mixup_core.laws import Erm
        >>> Erm().mean, Erm().variance, Erm().mixes
        (1.0, 0.0, False)
    """

    # Frozen: each `tag` in this file. After a change, stored results are not found or get another
    # meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "erm"
    constant: ClassVar = 1.0

    @property
    def caption(self) -> str:
        return "no mixing"
