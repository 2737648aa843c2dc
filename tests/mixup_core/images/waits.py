"""Waits: counts the operations for which a host waits for its device."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode  # PyTorch has no public name for it

_WAITING = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default}


class Waits(TorchDispatchMode):
    """Counts, during a `with`, the values that Python reads and the shapes that depend on them."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in _WAITING
        return func(*args, **(kwargs or {}))
