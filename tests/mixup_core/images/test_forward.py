from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from mixup_core.config.building import parsed
from mixup_core.images import training
from mixup_core.images.choices.models import Model
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.forward import (
    HiddenMix,
    Precision,
    arithmetic,
    forward,
    gradient_norms,
    kernels,
)
from mixup_core.images.losses import CrossEntropy
from mixup_core.images.training import fit

SMALL = {"width": 2}


def _network(name: str) -> nn.Module:
    model = parsed(Model, {"name": name} | (SMALL if name not in {"mlp"} else {}))
    return model.initialised(1, 3, 16, 0).eval()


@pytest.mark.parametrize("name", ["mlp", "narrow-resnet", "resnet18", "vgg16-bn"])
def test_the_number_of_hidden_layers_equals_the_depth_of_the_model(name: str) -> None:
    model = parsed(Model, {"name": name} | (SMALL if name != "mlp" else {}))
    network = _network(name)
    assert len(network.hidden_layers) == model.depth > 1  # type: ignore[arg-type]
    assert not any("hidden_layers" in key for key in network.state_dict())


@pytest.mark.parametrize("name", ["mlp", "narrow-resnet", "vgg16-bn"])
@pytest.mark.parametrize("layer", [1, 2])
def test_forward_mixes_paired_outputs_of_the_chosen_layer_and_passes_the_other_images(
    name: str, layer: int
) -> None:
    network = _network(name)
    rng = torch.Generator().manual_seed(0)
    others, own, beside = torch.randn(3, 2, 1, 16, 16, generator=rng)
    lam = torch.tensor([0.0, 1.0])
    hidden = HiddenMix(layer=layer, lam=lam)
    found = forward(network, torch.cat([others, own, beside]), hidden, precision="float32")
    alone = forward(network, torch.cat([others, beside[:1], own[1:]]), precision="float32")
    torch.testing.assert_close(found, alone)
    assert not network.hidden_layers[layer - 1]._forward_hooks  # type: ignore[index,union-attr]


def test_mixing_before_linear_layers_equals_mixing_their_outputs() -> None:
    network = parsed(Model, {"name": "mlp", "hidden": [5]}).initialised(1, 3, 4, 0)
    own, beside = torch.randn(2, 6, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    lam = torch.linspace(0, 1, 6)
    hidden = HiddenMix(layer=1, lam=lam)
    found = forward(network, torch.cat([own, beside]), hidden, precision="float32")
    first, second = (forward(network, part, precision="float32") for part in (own, beside))
    torch.testing.assert_close(found, torch.lerp(second, first, lam[:, None]))


def test_the_hook_is_removed_when_the_network_fails() -> None:
    network = _network("mlp")
    hidden = HiddenMix(layer=1, lam=torch.ones(3))
    with pytest.raises(RuntimeError):
        forward(network, torch.zeros(6, 1, 3, 3), hidden, precision="float32")
    assert not network.hidden_layers[0]._forward_hooks  # type: ignore[index,union-attr]


TOLD: list[tuple[str, str]] = []


def _note() -> None:
    backends = torch.backends
    TOLD.append((backends.cuda.matmul.fp32_precision, backends.cudnn.conv.fp32_precision))


class _Network(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        _note()
        logits = images.flatten(1)
        logits.register_hook(lambda _: _note())
        return logits


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


def test_a_deterministic_run_evaluates_with_deterministic_kernels_and_has_equal_bits_on_a_cpu(
    config: TrainConfig, splits: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    evaluate = training.evaluate

    def noted(*given: Tensor) -> dict[str, float]:
        seen.append(torch.are_deterministic_algorithms_enabled())
        return evaluate(*given)

    monkeypatch.setattr(training, "evaluate", noted)
    records = []
    for record in fit(replace(config, deterministic=True), splits):
        records.append(record)
        assert not torch.are_deterministic_algorithms_enabled(), "a caller has its own kernels"
    assert set(seen) == {True}
    assert records == list(fit(config, splits))


def test_gradient_norms_match_the_gradient_of_the_loss_at_each_pixel() -> None:
    torch_rng = torch.Generator().manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3)).train()
    images = torch.rand(4, 2, 2, 2, generator=torch_rng)
    labels = torch.tensor([0, 1, 2, 0])
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with torch.no_grad():
        found = gradient_norms(network, CrossEntropy(), "float32", images, labels)
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(part.grad is None for part in network.parameters())
    network.eval()
    own = images.clone().requires_grad_()
    nn.functional.cross_entropy(network(own), labels, reduction="sum").backward()  # type: ignore[no-untyped-call]
    assert torch.allclose(found, own.grad.square().mean(1).sqrt(), atol=1e-7)
