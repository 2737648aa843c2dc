"""Probe: what a run measures of itself beside its errors, one of the dataclasses of this package.

Each has a `tag`, its fields, and

    metrics             what it records, in the order of columns
    views               the only views it makes sense of, if there are such
    measure(subject)    the values of some or all of `metrics`

A file is read when a study is: it imports torch where it computes.
"""

from mixup_core.images.probes.el2n import El2n
from mixup_core.images.probes.gradient_norm import GradientNorm
from mixup_core.images.probes.input_gradient_norm import InputGradientNorm
from mixup_core.images.probes.mixup_loss import MixupLoss
from mixup_core.images.probes.neural_collapse import NeuralCollapse
from mixup_core.images.probes.training_errors import (
    MultiViewError,
    OriginalError,
    SpuriousError,
    TrueError,
)
from mixup_core.images.probes.weight_norm import WeightNorm

Probe = (
    OriginalError
    | MultiViewError
    | SpuriousError
    | TrueError
    | MixupLoss
    | GradientNorm
    | WeightNorm
    | InputGradientNorm
    | El2n
    | NeuralCollapse
)
"""To add one is to write its file and to name it here."""
