import pytest
import torch
from torch import nn

from mixup_core.config.building import parsed
from mixup_core.images.choices.models import Model
from mixup_core.images.forward import HiddenMix, forward

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
