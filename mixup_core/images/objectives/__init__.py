"""Objectives: functions that a training step minimises, one per file.

This file registers each of them, so that study files can select it by its tag.
"""

from mixup_core.images.objectives.all_pairs import AllPairs
from mixup_core.images.objectives.failure_set import FailureSet
from mixup_core.images.objectives.filtered import Filter
from mixup_core.images.objectives.mixup_e import MixupE
from mixup_core.images.objectives.objective import Objective, Plain
from mixup_core.images.objectives.reg_mixup import RegMixup

Objective.catalogue.add(Plain, RegMixup, Filter, FailureSet, AllPairs, MixupE)
