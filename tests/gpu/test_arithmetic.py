"""Precisions on a real GPU: float32 is IEEE arithmetic, and tf32 is not."""

from typing import Any

import torch

from mixup_core.images.forward import Precision, arithmetic
from tests.gpu.device import GPU, needs_gpu

pytestmark = needs_gpu


def _errors(precision: Precision) -> dict[str, float]:
    """Return the relative errors of a product and a convolution, forward and backward."""
    rng = torch.Generator().manual_seed(0)
    one, other = (torch.randn(512, 512, generator=rng) for _ in range(2))
    images = torch.randn(8, 64, 16, 16, generator=rng)
    kernel = torch.randn(64, 64, 3, 3, generator=rng)
    convolution: Any = torch.nn.functional.conv2d
    found = {}
    for name, of, parts in (
        ("product", torch.matmul, (one, other)),
        ("convolution", convolution, (images, kernel)),
    ):
        exact, there = (
            [part.to(place, copy=True).requires_grad_() for part in parts]
            for place in (torch.float64, GPU)
        )
        expected = of(*exact)
        upstream = torch.randn(expected.shape, generator=rng, dtype=torch.float64)
        expected.backward(upstream)
        with arithmetic(precision):
            got = of(*there)
            got.backward(upstream.to(GPU, torch.float32))
        pairs = {"forward": (got, expected)} | {
            f"gradient {number}": (a.grad, b.grad)
            for number, (a, b) in enumerate(zip(there, exact, strict=True))
        }
        for part, (measured, right) in pairs.items():
            away = measured.detach().cpu().double() - right.detach()
            found[f"{name}, {part}"] = float(away.norm() / right.detach().norm())
    return found


def test_float32_products_and_convolutions_are_ieee_arithmetic() -> None:
    assert all(error < 5e-6 for error in _errors("float32").values()), _errors("float32")


def test_tf32_rounds_products_and_convolutions_to_ten_bits() -> None:
    """cuDNN may still compute some gradients of a convolution in IEEE arithmetic."""
    errors = _errors("tf32")
    rounded = [name for name, error in errors.items() if error > 5e-5]
    assert {name for name in errors if "product" in name} <= set(rounded), errors
    assert "convolution, forward" in rounded, errors
    assert max(errors.values()) < 2e-3, errors
