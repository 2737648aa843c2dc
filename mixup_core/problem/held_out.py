"""HeldOut: keeps a search from reading numbers that only the confirmation may read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """Keeps a search from reading numbers (test images) that only the confirmation may read."""

    hidden: Callable[[Any], Any]
    """Returns the configuration that a search trains; raises RuleError if it cannot be searched."""
    revealed: Callable[[Any], Any]
    """Returns the configuration with which a winner is confirmed."""
