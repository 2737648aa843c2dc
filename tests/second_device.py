"""SecondDevice: a simulated device that refuses mixed devices and counts waiting for it.

Its tensors report the device `meta` and keep their values in a CPU tensor, on which operations are
computed. Like CUDA, it accepts a CPU tensor without dimensions as a number, and no other.
Operations for which the host would wait for a GPU are counted, by the function of `mixup_core` in
which they occur: reading values, shapes that depend on values, and blocking copies. Autocast is not
simulated.
"""

import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

# PyTorch has no public names for these.
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")
_OURS = str(Path(__file__).parents[1] / "mixup_core")
_INDEXING = {"index", "index_put", "index_put_", "_unsafe_index"}
_READING = {
    "_local_scalar_dense", "equal",
    "nonzero", "masked_select", "_unique2", "unique_consecutive", "unique_dim", "bincount",
    "_linalg_svd", "_linalg_eigh", "linalg_solve_ex",  # they look for errors
}  # fmt: skip


class MixedDevicesError(Exception):
    """An operation received tensors of two devices."""


class OnSecondDevice(torch.Tensor):
    """A tensor on the second device."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls: type["OnSecondDevice"], held: torch.Tensor) -> "OnSecondDevice":
        made: OnSecondDevice = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(),
            dtype=held.dtype, device=DEVICE,
        )  # fmt: skip
        made.held = held
        return made

    def tolist(self) -> Any:
        """Return the values; PyTorch's own method does not accept subclasses."""
        return self.cpu().tolist()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the tensor by its values, like a GPU tensor."""
        return self.held.detach().__reduce_ex__(protocol)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return SecondDevice().compute(func, args, kwargs or {})


class _Makers(TorchFunctionMode):
    """Copies Python values to the device, which `meta` would lose."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in {torch.tensor, torch.as_tensor} and given.get("device") is not None:
            return func(*args, **{**given, "device": None}).to(given["device"])
        return func(*args, **given)


class SecondDevice(TorchDispatchMode):
    """Makes `meta` the second device inside a `with`, and counts operations that wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()
        """Operation and function to how often a value came from the device."""
        self.uploads: Counter[str] = Counter()
        """The same of copies to the device that block."""
        self._makers = _Makers()

    def __enter__(self) -> "SecondDevice":
        self._makers.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._makers.__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.compute(func, args, kwargs or {})

    def compute(  # noqa: C901  the rules of a device, one after another
        self, func: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Return the result of an operation, on the device where a GPU would have it.

        Raises:
            MixedDevicesError: If its tensors are on two devices.
        """
        name = func.overloadpacket.__name__
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        ours = [each for each in tensors if isinstance(each, OnSecondDevice)]
        others = [each for each in tensors if not isinstance(each, OnSecondDevice)]
        goes_to = None if kwargs.get("device") is None else torch.device(kwargs["device"])
        if not ours and goes_to != DEVICE:
            return func(*args, **kwargs)
        is_copy = name == "copy_" or (name == "_to_copy" and goes_to is not None)
        if is_copy and not (ours and goes_to == DEVICE):
            into_ours = isinstance(args[0], OnSecondDevice) if name == "copy_" else not ours
            is_async = kwargs.get("non_blocking") or (name == "copy_" and True in args[2:])
            if into_ours and others and not is_async:
                self.uploads[f"{name} in {_function()}"] += 1
            elif not into_ours:
                self.reads[f"{name} in {_function()}"] += 1
        elif ours and any(each.dim() for each in others):
            raise MixedDevicesError(f"{func} in {_function()}")
        if name in _READING or (name in _INDEXING and _has_mask(*args[1:3])):
            self.reads[f"{name} in {_function()}"] += 1
        held_args, held = tree_map(_held, (args, kwargs))
        if goes_to is not None:
            held["device"] = torch.device("cpu")
        out = func(*held_args, **held)
        if goes_to not in {None, DEVICE} or (name == "copy_" and args[0] is not None and not ours):
            return out
        if name == "copy_":
            return args[0]
        same = {id(each.held): each for each in ours}

        def placed(each: Any) -> Any:
            if not isinstance(each, torch.Tensor):
                return each
            return same[id(each)] if id(each) in same else OnSecondDevice(_apart(each, others))

        return tree_map(placed, out)


class DispatchedInPython(TorchDispatchMode):
    """Computes on the CPU as PyTorch does for a device implemented in Python, for comparisons.

    If a tensor gets two gradients, autograd adds the second in place, but for a Python device into
    a new tensor. Values are equal, but strides may differ for images of one pixel, which occur in
    the last stages of EfficientNet at 8 x 8. BatchNorm then uses another kernel with another order
    of summation: the loss of the first epoch changed by 0.08 in batches of 5.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def second_device(patch: pytest.MonkeyPatch) -> None:
    """Make PyTorch's fused optimizers and autocast accept the device."""
    optimizer: Any = sys.modules[torch.optim.Optimizer.__module__]
    kinds = optimizer._get_fused_kernels_supported_devices()
    patch.setattr(optimizer, "_get_fused_kernels_supported_devices", lambda: [*kinds, "meta"])
    patch.setattr(torch, "autocast", lambda *_, **__: nullcontext())


def _held(each: Any) -> Any:
    return each.held if isinstance(each, OnSecondDevice) else each


def _apart(made: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
    """Return a copy of a tensor, which shares no memory with CPU tensors."""
    shared = {each.untyped_storage().data_ptr() for each in others}
    return made.clone() if made.untyped_storage().data_ptr() in shared else made


def _has_mask(indices: Any, value: torch.Tensor | None = None) -> bool:
    """Return whether a mask determines a shape; filling one number under a mask does not."""
    if value is not None and value.numel() == 1:
        return False
    return any(each is not None and each.dtype in {torch.bool, torch.uint8} for each in indices)


def _function() -> str:
    frame: Any = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    if frame is None:
        return "a test"
    return f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"
