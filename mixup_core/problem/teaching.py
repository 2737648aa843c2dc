"""Teaching: rules of distillation, where runs learn from runs of another arm."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mixup_core.rules import RuleError


@dataclass(frozen=True, kw_only=True, slots=True)
class Teacher:
    """A finished run that another run learns from."""

    config: Any
    state: bytes
    """Result of `Process.to_bytes` after the teacher's last epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Teaching:
    """Rules by which a run learns from the run of another arm with the same seed."""

    arm: Callable[[Any], str | None]
    """Returns the name of the arm that a configuration names as its teacher, or None."""
    taught: Callable[[Any, str], Any]
    """Takes a configuration and the final stage key of its teacher's run; returns the configuration
    with the key filled in. The key identifies the teacher in all keys of the run.
    """
    unfit: Callable[[Any, Any], Iterator[RuleError]] = lambda config, teacher: iter(())
    """Takes a configuration and that of its teacher; yields the reasons why the teacher does not
    fit.
    """
