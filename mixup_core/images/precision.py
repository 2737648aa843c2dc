"""Precision: the arithmetic of a network's passes, the same wherever it is named."""

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
"""Precision to the type that autocast computes in; float32 needs none."""


@contextmanager
def kernels(*, deterministic: bool) -> Iterator[None]:
    """Let PyTorch take only kernels that repeat their bits within a `with`, if that is wanted.

    An operation that has no such kernel on a device raises RuntimeError. cuBLAS repeats its bits
    only with the workspace that `mixup_core.numeric_settings` fixes for every process.
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
    """Yield what a generator yields; it computes with `kernels`, and its caller without them."""
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
    """Let CUDA compute products of float32 within a `with` in full, or in TF32 if that is named.

    Left alone, PyTorch takes TF32 (10 bits of mantissa) in convolutions and float32 in linear
    layers. A backward pass computes by what is set when it runs, so it belongs within.
    """
    wanted = "tf32" if precision == "tf32" else "ieee"
    cudnn: Any = torch.backends.cudnn  # the stubs lack what is set here
    places = (torch.backends.cuda.matmul, cudnn.conv)
    before = [place.fp32_precision for place in places]
    for place in places:
        place.fp32_precision = wanted
    try:
        yield
    finally:
        for place, precision_before in zip(places, before, strict=True):
            place.fp32_precision = precision_before
