"""Precision: the arithmetic of a network's passes, the same wherever it is named."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch

Precision = Literal["float32", "tf32", "bfloat16"]

DTYPES: dict[Precision, torch.dtype] = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
}
"""Precision to the type that autocast computes in; float32 needs none."""


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
