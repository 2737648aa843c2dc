"""Guided: an objective that learns from another run."""

from dataclasses import dataclass

from mixup_core.images.objectives.objective import Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class Guided(Objective):
    """Fields of every objective that has a teacher: the run of another arm at the same seed."""

    teacher: str
    """The arm whose run at the same seed is the teacher, trained first. Not part of any key."""
    teacher_key: str | None = None
    """Final stage key of the teacher, filled in when a study is read; stands for `teacher`."""
    oracle: bool = False
    """True if the teacher saw test images (`data.oracle`). It is declared, so that a table, a
    figure or a search can tell, and checked against the teacher."""
