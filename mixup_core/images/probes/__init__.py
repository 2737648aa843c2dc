"""Probes: measurements of a network during training, besides its errors, one per file.

To add one, write its module and add its class to the catalogue below.
"""

from mixup_core.images.probes.changed_images import ChangedImages
from mixup_core.images.probes.el2n import El2n
from mixup_core.images.probes.filter_scores import FilterScores
from mixup_core.images.probes.mixup_loss import MixupLoss
from mixup_core.images.probes.neural_collapse import NeuralCollapse
from mixup_core.images.probes.norms import (
    GradientNoise,
    GradientNorm,
    InputGradientNorm,
    MeanGradientNorm,
    WeightNorm,
)
from mixup_core.images.probes.outside_images import OutsideImages
from mixup_core.images.probes.probe import Probe
from mixup_core.images.probes.scores import Scores
from mixup_core.images.probes.training_errors import (
    LabelErrors,
    MultiViewError,
    OriginalError,
    SpuriousError,
    TrueError,
)

Probe.catalogue.add(
    OriginalError,
    MultiViewError,
    SpuriousError,
    TrueError,
    MixupLoss,
    GradientNorm,
    WeightNorm,
    InputGradientNorm,
    El2n,
    NeuralCollapse,
    MeanGradientNorm,
    LabelErrors,
    FilterScores,
    GradientNoise,
    ChangedImages,
    OutsideImages,
    Scores,
)
