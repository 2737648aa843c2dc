"""NumPy, PyTorch, SciPy and Pillow, each imported when it is first used; and the types of arrays.

Files that are imported whenever a study is read use these modules from here, because PyTorch alone
takes a second to import. At run time the types stand for `Any`; only type checkers see them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import scipy.optimize
    import scipy.sparse.csgraph
    import torch
    import torchvision
    from numpy.typing import NDArray
    from PIL import Image, ImageOps
    from scipy import special
    from torch import Tensor, nn
    from torch.nn import functional

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
else:

    class _Later:
        """Module that is imported when one of its names is first used."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._name), name)

    np, scipy, special = map(_Later, ("numpy", "scipy", "scipy.special"))
    torch, nn, functional = map(_Later, ("torch", "torch.nn", "torch.nn.functional"))
    torchvision, Image, ImageOps = map(_Later, ("torchvision", "PIL.Image", "PIL.ImageOps"))
    Floats = Ints = NDArray = Tensor = Any

__all__ = [
    "Floats", "Image", "ImageOps", "Ints", "NDArray", "Tensor", "functional", "nn", "np", "scipy",
    "special", "torch", "torchvision",
]  # fmt: skip
