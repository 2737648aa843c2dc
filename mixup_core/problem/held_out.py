"""HeldOut: how a search is kept from the numbers that only a confirmation may read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """The rules that keep a search from numbers that only its confirmation may read."""

    hidden: Callable[[Any], Any]
    """The configuration as a search may train it; RuleError if it cannot be searched."""
    revealed: Callable[[Any], Any]
    """The configuration as a winner is confirmed."""
