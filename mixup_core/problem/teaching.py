"""Teaching: how runs of a problem learn from others."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mixup_core.rules import RuleError


@dataclass(frozen=True, kw_only=True, slots=True)
class Teacher:
    """The finished run that another run learns from."""

    config: Any
    state: bytes
    """Result of `Process.to_bytes` after the teacher's last epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Teaching:
    """The rules by which a run learns from the run of another arm at the same seed."""

    arm: Callable[[Any], str | None]
    """The arm that a configuration names as its teacher; None if it learns from none."""
    taught: Callable[[Any, str], Any]
    """(configuration, final stage key of its teacher) to the configuration with that key filled
    in, which stands for the teacher in all of its own keys."""
    unfit: Callable[[Any, Any], Iterator[RuleError]] = lambda config, teacher: iter(())
    """(configuration, that of its teacher): yields each reason why it cannot learn from it."""
