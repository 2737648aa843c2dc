"""Names that plugins import: base classes, `Dataset`, `Problem`, types such as `Count`, and `use`.

A plugin is one Python file given by `--plugin FILE`, or an installed package with entry points of
the group `mixsweep`. It defines public classes that extend a base class of this module, or objects
of type `Dataset` or `Problem`. Study files select a class by its `tag` or `name`, and an object by
its `name`. A type such as `Count` limits the values of a field, here to integers of at least 1.
Import torch inside functions, because studies are read without it.

Example:
    >>> from dataclasses import dataclass
    >>> from mixsweep.plugins import Count, Model
    >>> @dataclass(frozen=True, kw_only=True, slots=True)
    ... class Tiny(Model):
    ...     name = "tiny"
    ...     has_batch_norm = False
    ...     width: Count = 8
    ...     def network(self, in_channels, num_classes, image_size):
    ...         from torch import nn
    ...         hidden = nn.Linear(in_channels * image_size**2, self.width)
    ...         return nn.Sequential(nn.Flatten(), hidden, nn.Linear(self.width, num_classes))
    >>> Tiny(width=0)
    Traceback (most recent call last):
        ...
    mixup_core.rules.RuleError: `width >= 1` must hold, got (width=0).
"""

from pathlib import Path

from mixup_core.config.limits import (
    Among,
    Count,
    Distinct,
    Matching,
    NonNegative,
    Positive,
    Range,
    Share,
    Whole,
)
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.choices.models import Model
from mixup_core.images.choices.optimizers import Optimizer
from mixup_core.images.data.facts import Bundle, DataError, Dataset, DatasetInfo, Images
from mixup_core.images.objectives.objective import Guided, Minimised, Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.laws import Law
from mixup_core.mixing.operation import Operation
from mixup_core.plugins.loading import use as _use
from mixup_core.plugins.source import PluginError
from mixup_core.problem import (
    Axis,
    Comparing,
    Cost,
    DivergedError,
    Keying,
    Measuring,
    Metric,
    Presentation,
    Problem,
    Randomness,
    Reading,
    Searching,
    Seed,
    Series,
    StateError,
    Teacher,
    Teaching,
)
from mixup_core.records import EpochRecord
from mixup_core.seeding import stream
from mixup_core.theory.synthetic import ArrayProcess

# Frozen: names that plugin files import. The content of a plugin is part of run keys, so an edited
# one trains again; tests/mixup_core/plugins/test_meaning.py fails.
__all__ = [
    "Among",
    "ArrayProcess",
    "Augmentation",
    "Axis",
    "Bundle",
    "Comparing",
    "Cost",
    "Count",
    "DataError",
    "Dataset",
    "DatasetInfo",
    "Distinct",
    "DivergedError",
    "EpochRecord",
    "Guided",
    "Images",
    "Keying",
    "Law",
    "Matching",
    "Measuring",
    "Metric",
    "Minimised",
    "Model",
    "NonNegative",
    "Objective",
    "Operation",
    "Optimizer",
    "PluginError",
    "Positive",
    "Presentation",
    "Probe",
    "Problem",
    "Randomness",
    "Range",
    "Reading",
    "Searching",
    "Seed",
    "Series",
    "Share",
    "StateError",
    "Teacher",
    "Teaching",
    "Whole",
    "stream",
    "use",
]


def use(file: str | Path) -> tuple[str, ...]:
    """Load a plugin file into this process; return the names of the laws, models, ... it adds.

    A returned name is a text such as `model tiny` or `dataset roses`. When an edited file is loaded
    again, all that it added before is replaced.

    Args:
        file: Path of a Python file.

    Raises:
        PluginError: If the file cannot be loaded; then nothing is added.

    Example:
        >>> from importlib.resources import files
        >>> from mixsweep.plugins import use
        >>> use(files("mixsweep.templates") / "plugin.py")  # which `mixsweep new` copies
        ('operation halves', 'model tiny', 'dataset corners')
    """
    return _use(file).names
