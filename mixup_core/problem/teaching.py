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
    """Returns the arm that a configuration names as its teacher, or None."""
    taught: Callable[[Any, str], Any]
    """(configuration, final stage key of the teacher) to the configuration with this key filled in.
    The key identifies the teacher in all keys of the run.
    """
    unfit: Callable[[Any, Any], Iterator[RuleError]] = lambda config, teacher: iter(())
    """(configuration, configuration of its teacher): yields the reasons why it cannot learn from
    it.
    """
