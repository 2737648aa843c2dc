"""Teaching: rules of distillation, where runs learn from runs of another arm."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mixup_core.rules import RuleError


@dataclass(frozen=True, kw_only=True, slots=True)
class Teacher:
    """A finished run from whose network another run learns.

    Example:
        >>> from mixup_core.problem import problem_named
        >>> from mixup_core.theory.entropy_floor import EntropyFloorConfig
        >>> from mixsweep.plugins import Teacher
        >>> config = EntropyFloorConfig()
        >>> process = problem_named("entropy-floor").start(config, None, "cpu")
        >>> teacher = Teacher(config=config, state=process.to_bytes())
    """

    config: Any
    state: bytes
    """State of the finished run: the result of `Process.to_bytes` after its last epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Teaching:
    """Rules by which a run learns from a run of another arm.

    `arm` returns the arm that a configuration names as teacher. `apart` gives the teacher random
    draws of its own. `taught` fills in the stage key of the teacher's run, so that the keys of the
    run depend on it.

    Example:
        >>> from dataclasses import replace
        >>> from mixsweep.plugins import Teaching
        >>> teaching = Teaching(
        ...     arm=lambda config: config.teacher,
        ...     taught=lambda config, key: replace(config, teacher_key=key),
        ... )
    """

    arm: Callable[[Any], str | None]
    """Takes a configuration; returns the arm that it names as its teacher, or None."""
    taught: Callable[[Any, str], Any]
    """Takes a configuration and the last stage key of its teacher's run; returns the configuration
    with this key filled in, so that the keys of the run depend on the teacher.
    """
    apart: Callable[[Any, Any], Any] = lambda teacher, student: teacher
    """Takes the configuration of the teacher's arm and that of the student, both at the student's
    seed; returns the configuration of the run that teaches. It should draw other initial weights
    and batches than the student, which is otherwise a copy of its teacher while both train in the
    same way. The default is the run of the teacher's arm itself.
    """
    unfit: Callable[[Any, Any], Iterator[RuleError]] = lambda config, teacher: iter(())
    """Takes a configuration and the teacher's configuration; yields the reasons why a run cannot
    learn from this teacher.
    """
