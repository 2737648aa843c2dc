"""Manifold: interpolates between the activations of two images at a layer of the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mixup_core.arrays import Floats, NDArray, Tensor, np
from mixup_core.config.limits import Distinct, Range
from mixup_core.mixing.linear import mix
from mixup_core.mixing.operation import Operation

Layer = Annotated[int, Range(0, 3)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifold(Operation):
    """Manifold mixup: linear interpolation of activations at a random layer, drawn for each batch.

    The layers before the drawn one process images and partners separately. The label weight is lam.
    No formula for the infimum of the expected loss is known, since training changes these layers
    and so the activations that are mixed. Runs thus do not record how far their loss is above it.

    Source: Verma et al. 2019, arXiv:1806.05236, section 2.

    Example:
        In a study file: `mix.operation: {manifold: {layers: [0, 1]}}`.

        >>> import numpy as np
        >>> from mixsweep.plugins import stream
        >>> from mixup_core.mixing.manifold import Manifold
        >>> operation = Manifold(layers=(1,))
        >>> operation.draw(np.array([0.3, 0.6]), (8, 8), stream(0, "mixing operation"))
        array([[1],
               [1]])
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "manifold"

    layers: Annotated[tuple[Layer, ...], Distinct(may_be_empty=False)] = (0, 1, 2)
    """Layers to draw from, with equal probability: 0 mixes the images, k the output of the k-th
    stage or hidden layer of the network.
    """

    def draw(self, lam: Floats, size: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
        del size
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/golden/test_draws.py fails.
        return np.asarray(self.layers)[rng.integers(len(self.layers), size=(len(lam), 1))]

    def mix(self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        del drawn
        return mix(own, beside, lam), lam

    def layer(self, drawn: Tensor) -> int:
        return int(drawn[0, 0])

    @property
    def deepest_layer(self) -> int:
        return max(self.layers)
