"""Objective: what a step minimises. Plain values; their losses are in `images/objectives.py`."""

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from mixup_core.laws import Erm, Law
from mixup_core.rules import require
from mixup_core.schedules import epoch_after


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain:
    """The mean loss of the mixed images: mixup, and ERM under a law that does not mix."""

    tag: ClassVar = "plain"

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        """Return the law and the objective that are in force in a 0-based epoch of `epochs`."""
        del epoch, epochs
        return law, self


@dataclass(frozen=True, kw_only=True, slots=True)
class RegMixup:
    """The loss of the images as they are, and beside it that of the mixed ones.

        loss(g(x), y) + eta * mixup loss

    The mixed images are those of `mix`: the source's alpha is `mix.law.alpha`. Both halves of a
    batch pass the network together, so BatchNorm sees both.

    Source: Pinto et al. 2022, arXiv:2206.14502, equation 4; Beta(20, 20) and eta 1 there.
    """

    tag: ClassVar = "regmixup"

    eta: float = 1.0
    """Weight of the mixup loss, at least 0 and finite. At 0 nothing is mixed: the run is ERM."""
    reduction: Literal["sum", "mean"] = "sum"
    """`mean` takes half of the sum, as the authors' code does with one mean over both halves."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If eta is out of range.
        """
        require(0 <= self.eta < math.inf, "0 <= eta < inf", self, "eta")

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        """Return the law and the objective that are in force in a 0-based epoch of `epochs`."""
        del epoch, epochs
        return (Erm(), Plain()) if self.eta == 0 or law == Erm() else (law, self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """The loss of those mixed images on which the student is behind, or ahead of, a teacher.

    Of each mixed image r = loss of the teacher - loss of the student, without a gradient. Where
    r <= threshold the student is not yet better.

    Source: SCIENCE.md, F2.
    """

    tag: ClassVar = "filter"

    teacher: str
    """The arm whose run at the same seed is the teacher, trained first. Not part of any key."""
    teacher_key: str | None = None
    """Final stage key of the teacher, filled in when a study is read; stands for `teacher`."""
    oracle: bool = False
    """Whether the teacher saw test images (`data.oracle`). It is declared, so that a table, a
    figure or a search can tell, and checked against the teacher."""
    keep: Literal["low", "high", "all"] = "low"
    """`low` keeps r <= threshold, `high` the others, `all` every image (plain mixup)."""
    threshold: float = 0.0
    """Of r, in units of the loss; finite."""
    warm_up: float = 0.25
    """Fraction of the epochs that come first and filter nothing, in [0, 1]."""
    stop: float = 1.0
    """Fraction of the epochs after which nothing is filtered any more, in [warm_up, 1]."""
    norm: Literal["batch", "kept"] = "batch"
    """Whether the sum over the images kept is divided by the size of the batch or by their number.
    The loss of a batch of which none is kept is 0."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            RuleError: If one is out of range.
        """
        require(-math.inf < self.threshold < math.inf, "threshold is finite", self, "threshold")
        fits = 0 <= self.warm_up <= self.stop <= 1
        require(fits, "0 <= warm_up <= stop <= 1", self, "warm_up", "stop")

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        """Return the law and the objective that are in force in a 0-based epoch of `epochs`."""
        first, end = epoch_after(self.warm_up, epochs), epoch_after(self.stop, epochs)
        if not first <= epoch < end:
            return law, Plain()
        # What is left is what decides the epoch: the key stands for the teacher.
        return law, dataclasses.replace(self, teacher="", warm_up=0.0, stop=1.0)


Objective = Plain | RegMixup | Filter
