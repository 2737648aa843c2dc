"""Operation: base class of operations that mix pairs of images; plugins may subclass it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from mixup_core.arrays import Floats, NDArray, Tensor, np
from mixup_core.config.catalogue import Catalogue
from mixup_core.config.checked import Checked


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation(Checked, ABC):
    """Base class of operations that mix pairs of images and weight the label of the first.

    A weight lam applies to a batch or to a single image (`mix.lam_scope`). Training calls `draw`
    once per epoch with all weights, and `mix` once per batch. All randomness must come from the
    generator that `draw` gets, so that a resumed run gives the same bits as one that never stopped.
    The file of an operation is imported whenever a study file is read, so import torch inside the
    methods.

    Example:
        >>> from dataclasses import dataclass
        >>> from mixsweep.plugins import Operation
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class Halves(Operation):
        ...     tag = "halves"
        ...     def mix(self, own, beside, lam, drawn):
        ...         import torch
        ...         rows = (lam * own.shape[2]).round()
        ...         stays = torch.arange(own.shape[2])[:, None] < rows[:, None, None, None]
        ...         return torch.where(stays, own, beside), rows / own.shape[2]
        >>> import torch
        >>> own, beside = torch.ones(1, 1, 4, 1), torch.zeros(1, 1, 4, 1)
        >>> mixed, weight = Halves().mix(own, beside, torch.tensor([0.8]), torch.empty(1, 0))
        >>> mixed.flatten(), weight
        (tensor([1., 1., 1., 0.]), tensor([0.7500]))
    """

    catalogue: ClassVar[Catalogue[Operation]] = Catalogue("operation", meant={"mixup": "linear"})

    tag: ClassVar[str]
    """Name of the operation in study files."""
    is_linear: ClassVar[bool] = False
    """True if the mixed image is lam times the image plus 1 - lam times its partner. Training then
    computes this itself and does not call `mix`.
    """
    has_linear_floor: ClassVar[bool] = False
    """True if the infimum of the expected loss is that of linear interpolation (`loss_floor`). If
    False, runs do not record the excess of the loss over the infimum.
    """
    needs_saliency: ClassVar[bool] = False
    """True if training computes the saliency of each pixel and calls `mix_salient`, not `mix`."""

    def unfit(self, size: tuple[int, int]) -> str | None:
        """Return why images of a size cannot be mixed, such as `it needs even sides`; else None.

        Called when a study is read, and again before `draw`. By default any size is possible.

        Args:
            size: Height and width of the images.

        Example:
            >>> from mixup_core.mixing.puzzlemix import PuzzleMix
            >>> PuzzleMix().unfit((8, 8)) is None
            True
            >>> PuzzleMix().unfit((9, 9))
            'puzzlemix needs images with an even height and an even width'
        """
        del size
        return None

    def draw(self, lam: Floats, size: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
        """Draw the random values that `mix` needs; called once per epoch.

        Args:
            lam: All mixing weights of the epoch, (weights,), in [0, 1].
            size: Height and width of the images.
            rng: Random generator for this call only.

        Returns:
            Random values, one row per weight, (weights, ...). By default the rows are empty.

        Example:
            >>> import numpy as np
            >>> from mixsweep.plugins import stream
            >>> from mixup_core.mixing.cutmix import CutMix
            >>> lam = np.array([0.2, 0.9, 0.5])
            >>> boxes = CutMix().draw(lam, (8, 8), stream(0, "mixing operation"))
            >>> boxes.shape  # for each weight: first row, end row, first column, end column
            (3, 4)
        """
        del size, rng
        return np.empty((len(lam), 0))

    @abstractmethod
    def mix(self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """Mix a batch of images with their partners; called once per batch.

        Args:
            own: Images, (batch, channels, height, width), float32; must not be modified.
            beside: Partners of the images, as `own`; must not be modified.
            lam: Mixing weights, (batch,), float32.
            drawn: Rows returned by `draw`, on the device of the images: one row for the batch, or
                one for each image.

        Returns:
            The mixed images, as `own`, and the weights of the labels of `own`, in [0, 1], (batch,)
            or (1,), float32.

        Example:
            >>> import torch
            >>> from mixup_core.mixing.cutmix import CutMix
            >>> own, beside = torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2)
            >>> box = torch.tensor([[0, 1, 0, 2]])  # the first of two rows, all columns
            >>> mixed, weight = CutMix().mix(own, beside, torch.tensor([0.5]), box)
            >>> mixed[0, 0], weight
            (tensor([[0., 0.],
                    [1., 1.]]), tensor([0.5000]))
        """

    def mix_salient(
        self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor, saliency: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Mix a batch as `mix` does, but with the saliency of each pixel.

        Training calls this method instead of `mix` if `needs_saliency` is True.

        Args:
            own: Images, as for `mix`.
            beside: Partners of the images, as for `mix`.
            lam: Mixing weights, as for `mix`.
            drawn: Rows returned by `draw`, as for `mix`.
            saliency: Root mean square over channels of the loss gradient at each pixel, for the
                images (index 0) and their partners (index 1): (2, batch, height, width), float32.

        Example:
            >>> import torch
            >>> from mixup_core.mixing.linear import Linear  # does not use saliency
            >>> own, beside = torch.ones(1, 1, 1, 2), torch.zeros(1, 1, 1, 2)
            >>> lam, drawn = torch.tensor([0.5]), torch.empty(1, 0)
            >>> saliency = torch.zeros(2, 1, 1, 2)
            >>> Linear().mix_salient(own, beside, lam, drawn, saliency)[0]
            tensor([[[[0.5000, 0.5000]]]])
        """
        del saliency
        return self.mix(own, beside, lam, drawn)

    def layer(self, drawn: Tensor) -> int:
        """Return the hidden layer whose outputs are mixed in a batch; 0 means that `mix` is called.

        Args:
            drawn: Rows returned by `draw` for this batch, on the CPU.

        Example:
            >>> import torch
            >>> from mixup_core.mixing.linear import Linear
            >>> from mixup_core.mixing.manifold import Manifold
            >>> Linear().layer(torch.empty(1, 0)), Manifold().layer(torch.tensor([[2]]))
            (0, 2)
        """
        del drawn
        return 0

    @property
    def deepest_layer(self) -> int:
        """The largest number that `layer` may return; networks with fewer layers are refused.

        Example:
            >>> from mixup_core.mixing.linear import Linear
            >>> from mixup_core.mixing.manifold import Manifold
            >>> Linear().deepest_layer, Manifold(layers=(0, 2)).deepest_layer
            (0, 2)
        """
        return 0
