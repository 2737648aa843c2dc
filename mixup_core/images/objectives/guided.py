"""Guided: base class of objectives that use a teacher."""

from dataclasses import dataclass

from mixup_core.images.objectives.objective import Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class Guided(Objective):
    """Base class of objectives with a teacher: a run of another arm's configuration.

    Example:
        >>> from dataclasses import dataclass
        >>> from mixsweep.plugins import Guided, Minimised
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class Imitation(Guided):
        ...     tag = "imitation"
        ...     def on(self, batch, student, loss, teacher):
        ...         difference = batch.logits(student) - batch.logits(teacher).detach()
        ...         return Minimised(loss=difference.square().mean())
        >>> Imitation(teacher="erm").teacher
        'erm'
    """

    teacher: str
    """Name of the arm whose configuration the teacher has. The teacher is trained first, at the
    same seed and on the same images, but with `as_teacher: true`: with a start, batches and mixing
    of its own. The name does not enter keys.
    """
    teacher_key: str | None = None
    """Final stage key of the teacher, filled in when a study is read. It replaces `teacher` in
    keys.
    """
    oracle: bool = False
    """True if the teacher was trained on test images (`data.oracle`). The field is checked against
    the teacher. Tables and figures mark such runs, and searches refuse them.
    """
