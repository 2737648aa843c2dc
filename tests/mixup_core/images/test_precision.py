"""Precision: each setting has one meaning on a GPU, in forward and backward passes.

No GPU is available: the tests check PyTorch's flags, and that a CPU computes the same bits.
"""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from mixup_core.images import training
from mixup_core.images.choices.models import Mlp
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.forward import Precision, arithmetic, forward, kernels
from mixup_core.images.training import fit
from mixup_core.keys import run_key

TOLD: list[tuple[str, str]] = []


def _note() -> None:
    backends = torch.backends
    TOLD.append((backends.cuda.matmul.fp32_precision, backends.cudnn.conv.fp32_precision))


class _Listens(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, images: Tensor) -> Tensor:
        del ctx
        _note()
        return images.clone()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        del ctx
        _note()
        return gradient


class _Network(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        listened: Tensor = _Listens.apply(images.flatten(1))
        return listened


@pytest.mark.parametrize(
    ("precision", "told"), [("float32", "ieee"), ("tf32", "tf32"), ("bfloat16", "ieee")]
)
def test_float32_products_have_full_precision_unless_tf32_is_set(
    precision: Precision, told: str
) -> None:
    TOLD.clear()
    images = torch.zeros(2, 1, 2, 2, requires_grad=True)
    before = torch.backends.cudnn.conv.fp32_precision
    forward(_Network(), images, precision=precision)
    assert [(told, told)] == TOLD
    assert torch.backends.cudnn.conv.fp32_precision == before
    with arithmetic(precision):
        forward(_Network(), images, precision=precision).sum().backward()
    assert [(told, told)] * 3 == TOLD


def test_a_teacher_in_another_precision_does_not_change_that_of_the_student() -> None:
    TOLD.clear()
    images = torch.zeros(2, 1, 2, 2, requires_grad=True)
    with arithmetic("float32"):
        pupil = forward(_Network(), images, precision="float32")
        forward(_Network(), images, precision="tf32")
        pupil.sum().backward()
    assert TOLD == [("ieee", "ieee"), ("tf32", "tf32"), ("ieee", "ieee")]


@pytest.mark.parametrize("before", [False, True])
def test_kernels_are_deterministic_within_the_context_and_restored_afterwards(
    before: bool,
) -> None:
    torch.use_deterministic_algorithms(mode=before)
    try:
        for wanted in (False, True):
            with kernels(deterministic=wanted):
                assert torch.are_deterministic_algorithms_enabled() == (wanted or before)
            assert torch.are_deterministic_algorithms_enabled() == before
    finally:
        torch.use_deterministic_algorithms(mode=False)


def test_a_deterministic_run_has_its_own_key_and_equal_bits_on_a_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = TrainConfig(
        data=DataConfig(name="digits", num_train=40),
        model=Mlp(hidden=(4,)),
        epochs=2,
        batch_size=20,
    )
    fixed = replace(config, deterministic=True)
    assert run_key(fixed) != run_key(config)
    data = load(config.data, None)
    seen = []
    evaluate = training.evaluate

    def noted(*given: Tensor) -> dict[str, float]:
        seen.append(torch.are_deterministic_algorithms_enabled())
        return evaluate(*given)

    monkeypatch.setattr(training, "evaluate", noted)
    records = []
    for record in fit(fixed, data):
        records.append(record)
        assert not torch.are_deterministic_algorithms_enabled(), "a caller has its own kernels"
    assert set(seen) == {True}
    assert records == list(fit(config, data))
