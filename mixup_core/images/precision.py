"""Precision: the arithmetic of a network's forward and backward pass."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
Precision = Literal["float32", "tf32", "bfloat16"]

DTYPES: dict[Precision, torch.dtype] = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
}
"""Type in which autocast computes, by precision. With float32, autocast is off."""


@contextmanager
def kernels(*, deterministic: bool) -> Iterator[None]:
    """Context manager: make PyTorch use deterministic kernels only, if `deterministic` is True.

    An operation without such a kernel on the device raises RuntimeError. cuBLAS is deterministic
    only with the workspace that `mixup_core.numeric_settings` sets for every process.
    """
    if not deterministic or torch.are_deterministic_algorithms_enabled():
        yield
        return
    torch.use_deterministic_algorithms(mode=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(mode=False)


def repeatable(
    steps: Generator[Item, None, Result], *, deterministic: bool
) -> Generator[Item, None, Result]:
    """Run a generator with deterministic PyTorch kernels, and yield its items.

    Between two items, the caller's code runs with its own setting. If `deterministic` is False,
    the generator uses any kernels.
    """
    if not deterministic:
        return (yield from steps)
    while True:
        with kernels(deterministic=deterministic):
            try:
                item = next(steps)
            except StopIteration as ended:
                result: Result = ended.value
                return result
        yield item


@contextmanager
def arithmetic(precision: Precision) -> Iterator[None]:
    """Context manager: compute float32 products on CUDA in TF32 for `tf32`, else in IEEE float32.

    Products are matrix products and convolutions. By default, PyTorch uses TF32 (10 bits of
    mantissa) in convolutions and float32 in linear layers. A backward pass uses the setting at its
    own time, so run it within the context, too.
    """
    wanted = "tf32" if precision == "tf32" else "ieee"
    cudnn: Any = torch.backends.cudnn  # its type stubs lack `conv.fp32_precision`
    places = (torch.backends.cuda.matmul, cudnn.conv)
    before = [place.fp32_precision for place in places]
    for place in places:
        place.fp32_precision = wanted
    try:
        yield
    finally:
        for place, precision_before in zip(places, before, strict=True):
            place.fp32_precision = precision_before
