"""Operation: base class of operations that mix two images; plugins may subclass it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mixup_core.tree.catalogue import Catalogue
from mixup_core.tree.checked import Checked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation(Checked, ABC):
    """Base class of operations that mix two images and weight the label of the first.

    A weight lam applies to a batch or to a single image (`mix.lam_scope`). `draw` is called once
    per epoch with all weights, `mix` once per batch. Both must use no other source of randomness,
    so that a resumed run has the same bits. The file of an operation is imported whenever a study
    is read, so import torch inside the methods.
    """

    catalogue: ClassVar[Catalogue["Operation"]] = Catalogue("operation", meant={"mixup": "linear"})

    tag: ClassVar[str]
    """Name of the operation in study files."""
    is_linear: ClassVar[bool] = False
    """True if the result is lam times the image plus 1 - lam times its partner. Batches are then
    assembled in one pass, and `mix` is not called.
    """
    has_linear_floor: ClassVar[bool] = False
    """True if the infimum of the expected loss is that of linear interpolation
    (`mixup_core.mixing.loss_floor`). If False, runs record neither the infimum nor the excess of
    the loss over it.
    """
    needs_saliency: ClassVar[bool] = False
    """True if `mix_salient` is to be called instead of `mix`."""

    def draw(
        self, lam: "NDArray[np.float64]", size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any]":
        """Draw the random values that mixing needs besides the weights: (weights, ...).

        Args:
            lam: Mixing weights, (weights,), in [0, 1].
            size: Height and width of the images.
            rng: Random generator that is used for nothing else.
        """
        del size, rng
        import numpy as np

        return np.empty((len(lam), 0))

    @abstractmethod
    def mix(
        self, own: "Tensor", beside: "Tensor", lam: "Tensor", drawn: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        """Return the mixed images and the weight of the label of `own`, in [0, 1].

        Args:
            own: Images, (batch, channels, height, width), float32; must not be modified.
            beside: The partners, as `own`.
            lam: Mixing weights, (batch,), float32.
            drawn: Rows returned by `draw`, on the device of the images; one for the batch or one
                for each image.

        Returns:
            Images, as `own`; weights, (batch,) or (1,), float32.
        """

    def mix_salient(
        self, own: "Tensor", beside: "Tensor", lam: "Tensor", drawn: "Tensor", saliency: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        """Mix as `mix` does, given how strongly the loss depends on each pixel.

        Args:
            own: Images, as for `mix`.
            beside: The partners, as for `mix`.
            lam: Mixing weights, as for `mix`.
            drawn: Rows returned by `draw`, as for `mix`.
            saliency: Absolute gradient of the loss at each pixel of the images (index 0) and of
                their partners (index 1), (2, batch, height, width), float32, non-negative.
        """
        del saliency
        return self.mix(own, beside, lam, drawn)

    def layer(self, drawn: "Tensor") -> int:
        """Return the hidden layer whose outputs are mixed in a batch; 0: `mix` mixes the images.

        Args:
            drawn: Rows returned by `draw` for this batch, on the CPU.
        """
        del drawn
        return 0

    @property
    def deepest_layer(self) -> int:
        """The deepest layer that `layer` may return; networks with fewer layers are refused."""
        return 0
