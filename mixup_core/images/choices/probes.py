"""Probe: what a run measures of itself beside its errors. Plain values; see `images/probes.py`."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class _Probe:
    """Measured after some epochs on the network in evaluation mode; changes nothing in training.

    What it draws comes from streams of its own, and training images are seen unmixed (but for
    `MixupLoss` and `GradientNorm`) and not augmented.
    """

    every: int | None = None
    """Epochs from one measurement to the next; it divides `epochs`. None: `eval_every`."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If the number of epochs is not positive.
        """
        require(self.every is None or self.every >= 1, "every >= 1", self, "every")


@dataclass(frozen=True, kw_only=True, slots=True)
class OriginalError(_Probe):
    """`train/error`, `train/nll`: of the training images as they are; single views only."""

    tag: ClassVar = "original-error"


@dataclass(frozen=True, kw_only=True, slots=True)
class MultiViewError(_Probe):
    """`train/multi_view_error`: of the training images as an access shows them, gamma drawn anew.

    Source: SCIENCE.md, A.4, as the next two; concatenated views only.
    """

    tag: ClassVar = "multi-view-error"


@dataclass(frozen=True, kw_only=True, slots=True)
class SpuriousError(_Probe):
    """`train/spurious_error`: from the view of the paired class alone, [0, x']; low: relied on."""

    tag: ClassVar = "spurious-error"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrueError(_Probe):
    """`train/true_error`: from the own view alone, [x, 0]."""

    tag: ClassVar = "true-error"


@dataclass(frozen=True, kw_only=True, slots=True)
class MixupLoss(_Probe):
    """`train/mixup_loss`, its floor `train/mixup_floor` and their difference `train/mixup_excess`.

    The mean loss over one fresh draw of partners and weights from the law in force.
    """

    tag: ClassVar = "mixup-loss"


@dataclass(frozen=True, kw_only=True, slots=True)
class GradientNorm(_Probe):
    """`train/gradient_norm`: 2-norm of the gradient of the objective in force, over all images.

    One fresh draw of partners and weights; without weight decay. BatchNorm uses its statistics.

    Source: Liu et al. 2023, arXiv:2303.01475, section 5.
    """

    tag: ClassVar = "gradient-norm"


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightNorm(_Probe):
    """`train/weight_norm`: 2-norm of all parameters."""

    tag: ClassVar = "weight-norm"


@dataclass(frozen=True, kw_only=True, slots=True)
class InputGradientNorm(_Probe):
    """`test/input_gradient_norm`, `val/...`: mean 2-norm of the gradient of a loss by its image."""

    tag: ClassVar = "input-gradient-norm"


@dataclass(frozen=True, kw_only=True, slots=True)
class El2n(_Probe):
    """`train/el2n`: mean 2-norm of softmax minus one-hot label over the training images.

    Source: Paul et al. 2021, arXiv:2107.07075, definition 2.
    """

    tag: ClassVar = "el2n"


@dataclass(frozen=True, kw_only=True, slots=True)
class NeuralCollapse(_Probe):
    """`train/nc1_variability` to `train/nc4_disagreement`: how far the last layer has collapsed.

    Source: Papyan, Han and Donoho 2020, arXiv:2008.08186, figures 2 to 7.
    """

    tag: ClassVar = "neural-collapse"


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

OF_SINGLE_VIEWS = (OriginalError,)
OF_CONCATENATED_VIEWS = (MultiViewError, SpuriousError, TrueError)
