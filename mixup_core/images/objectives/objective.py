"""Objective: what a step minimises, one of the dataclasses of this package.

Each has a `tag`, its fields, and

    metrics                               what its records hold beside the loss
    has_to_mix                            whether it means nothing under a law that never mixes
    in_epoch(law, epoch, epochs)          the law and the objective that are in force in an epoch
    on(batch, student, loss, teacher)     its value on a batch, `Minimised`
    floor(mixed_floor)                    the infimum of its mean, where one is known

A file is read when a study is: it imports torch where it computes.
"""

from mixup_core.images.objectives.filtered import Filter
from mixup_core.images.objectives.plain import Plain
from mixup_core.images.objectives.reg_mixup import RegMixup

Objective = Plain | RegMixup | Filter
"""To add one is to write its file and to name it here."""
