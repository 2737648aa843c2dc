"""Mixing: draws mixing weights and partners, mixes pairs of images, and computes the mixed loss.

Each built-in operation (linear interpolation, CutMix, ...) has its own file; this package registers
them all.
"""

from mixup_core.mixing.cutmix import CutMix
from mixup_core.mixing.fmix import FMix
from mixup_core.mixing.gridmix import GridMix
from mixup_core.mixing.linear import Linear
from mixup_core.mixing.manifold import Manifold
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.puzzlemix import PuzzleMix
from mixup_core.mixing.resizemix import ResizeMix
from mixup_core.mixing.saliencymix import SaliencyMix
from mixup_core.mixing.smoothmix import SmoothMix

Operation.catalogue.add(
    Linear, CutMix, ResizeMix, FMix, GridMix, SmoothMix, SaliencyMix, Manifold, PuzzleMix
)  # fmt: skip
