"""Schedules: the law of each epoch. Plain values."""

from dataclasses import dataclass

from mixup_core.laws import Law


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """One law in every epoch."""

    law: Law

    def law_at(self, epoch: int) -> Law:
        """Return the law of a 0-based epoch."""
        del epoch
        return self.law


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """One law before the switch epoch, another from it on."""

    law: Law
    switch_epoch: int
    """First epoch (0-based) under `law_after`; 0 means `law` is never used."""
    law_after: Law

    def law_at(self, epoch: int) -> Law:
        """Return the law of a 0-based epoch."""
        return self.law if epoch < self.switch_epoch else self.law_after


Schedule = Constant | Switch
