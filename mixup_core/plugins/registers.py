"""Registers: the registries to which plugins can add, by noun: `model`, `law`, `dataset`, ..."""

from collections.abc import Mapping
from typing import Any

from mixup_core.config.catalogue import Register
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.choices.models import Model
from mixup_core.images.choices.optimizers import Optimizer
from mixup_core.images.data.catalog import DATASETS
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.laws import Law
from mixup_core.mixing.operation import Operation
from mixup_core.problem import PROBLEMS

BASES: Mapping[str, Any] = {
    base.catalogue.noun: base
    for base in (Model, Optimizer, Objective, Law, Operation, Augmentation, Probe)
}
"""Base classes of the classes that plugins can add, by noun."""

REGISTERS: Mapping[str, Register[Any]] = {noun: base.catalogue for noun, base in BASES.items()} | {
    register.noun: register for register in (DATASETS, PROBLEMS)
}
