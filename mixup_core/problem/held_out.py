"""HeldOut: hides from a search the numbers that only the confirmation may read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """Hides from a search the numbers (test images) that only the confirmation may read."""

    hidden: Callable[[Any], Any]
    """Returns the configuration that a search trains; raises RuleError if it cannot be searched."""
    revealed: Callable[[Any], Any]
    """Returns the configuration with which the winner of a search is confirmed."""
