"""MixConfig: how images and labels are mixed in each epoch."""

from dataclasses import dataclass, field
from typing import Literal

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Share, Whole
from mixup_core.laws import Erm, Law
from mixup_core.laws.schedules import Schedule, epoch_after
from mixup_core.mixing.linear import Linear
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.partners import FromDataset, Partner
from mixup_core.rules import require, require_one


@dataclass(frozen=True, kw_only=True, slots=True)
class MixConfig(Checked):
    """Settings for mixing images and labels in each epoch."""

    law: Law = field(default_factory=Erm)
    """Law of lam in the first epochs."""
    schedule: Schedule | None = None
    """Schedule that changes the law from epoch to epoch, instead of `law`. None: no schedule."""
    switch_epoch: Whole | None = None
    """First epoch (0-based) trained under `law_after`. None: never."""
    switch_fraction: Share | None = None
    """Fraction of the epochs before the switch, rounded to a whole epoch; instead of
    `switch_epoch`.
    """
    law_after: Law = field(default_factory=Erm)
    """Law from the switch on. It has no effect without a switch."""
    lam_scope: Literal["batch", "sample"] = "batch"
    """`batch`: one weight for all images of a batch. `sample`: one weight per image."""
    partner: Partner = field(default_factory=FromDataset)
    """Rule that chooses the partner of each image."""
    operation: Operation = field(default_factory=Linear)
    """Operation that mixes an image with its partner."""
    probability: Share = 1.0
    """Probability that a batch is mixed; other batches are used as they are."""
    second: Operation | None = None
    """Another operation that replaces `operation` in some batches."""
    second_law: Law | None = None
    """Law of lam in the batches of the second operation. None: the same law as for the first."""
    second_probability: Share = 0.5
    """Probability that a mixed batch uses the second operation, if there is one."""
    label_law: Law | None = None
    """Law of the label's weight, drawn independently of the image's weight. None: the operation
    determines the label's weight.
    """

    def check(self) -> None:
        require_one(self, "switch_fraction", "switch_epoch")
        is_reached = (self.switch_epoch, self.switch_fraction) != (None, None)
        rule = "law_after needs switch_epoch or switch_fraction, which say when it begins"
        require(is_reached or not self.law_after.mixes, rule, self, "switch_epoch", "law_after")
        rule = "mix.law must be left out if mix.schedule is given, which sets the law of each epoch"
        require(self.schedule is None or not self.law.mixes, rule, self, "schedule", "law")
        has_second = self.second is not None or self.second_law is None
        rule = "second_law needs `second`, a second operation"
        require(has_second, rule, self, "second_law", "second")

    def law_at(self, epoch: int, epochs: int) -> Law:
        """Return the law of lam in a 0-based epoch of a run with `epochs` epochs."""
        switch_epoch = self.switch_epoch
        if self.switch_fraction is not None:
            switch_epoch = epoch_after(self.switch_fraction, epochs)
        if switch_epoch is not None and epoch >= switch_epoch:
            return self.law_after
        return self.law if self.schedule is None else self.schedule.law_at(epoch, epochs)
