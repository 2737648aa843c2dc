"""Operation: what mixing does to two images; an open choice, one member per file."""

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
    """Makes one image of two, and says which share of the label stays with the first.

    A weight lam serves a batch or a single image (`mix.lam_scope`). `draw` is called once per epoch
    with all weights, `mix` once per batch. Both see no other randomness, so that a resumed run has
    the same bits. The file of an operation is read when a study is: it imports torch where it
    computes.
    """

    catalogue: ClassVar[Catalogue["Operation"]] = Catalogue("operation")

    tag: ClassVar[str]
    """Name of the operation in study files."""
    has_linear_floor: ClassVar[bool] = False
    """True if the infimum of the loss is known: that of linear interpolation
    (`mixup_core.mixing.loss_floor`). If not, no floor and no excess over it are recorded."""
    needs_saliency: ClassVar[bool] = False
    """True if `mix_salient` is called in the place of `mix`."""

    def draw(
        self, lam: "NDArray[np.float64]", size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any]":
        """Return the random draws beside the weights, one row per weight: (weights, ...).

        Args:
            lam: (weights,), in [0, 1], as the images are to be mixed.
            size: Height and width of the images.
            rng: Source of the draws; a stream that nothing else reads.
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
            own: (batch, channels, height, width), float32; must not be changed.
            beside: As `own`, the partners.
            lam: (batch,), float32.
            drawn: Rows of `draw`, on the device of the images: one for the whole batch, or one for
                each image.

        Returns:
            Images as `own`; weights, (batch,) or (1,), float32.
        """

    def mix_salient(
        self, own: "Tensor", beside: "Tensor", lam: "Tensor", drawn: "Tensor", saliency: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        """Return what `mix` does, knowing which pixels the loss of the network depends on.

        Args:
            own: As for `mix`; so are `beside`, `lam` and `drawn`.
            beside: The partners.
            lam: Weight of each image.
            drawn: Rows of `draw`.
            saliency: Size of the gradient of the loss at each pixel of the images and of their
                partners, (2, batch, height, width), float32, at least 0.
        """
        del saliency
        return self.mix(own, beside, lam, drawn)

    def layer(self, drawn: "Tensor") -> int:
        """Return the hidden layer whose output is mixed in a batch; 0: `mix` makes its images.

        Args:
            drawn: As for `mix`, but on the CPU.
        """
        del drawn
        return 0

    @property
    def deepest_layer(self) -> int:
        """The deepest layer that `layer` may return: a network must have as many."""
        return 0
