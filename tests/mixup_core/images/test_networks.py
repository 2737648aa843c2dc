"""Networks against those of torchvision, timm and PyTorch."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils._python_dispatch import TorchDispatchMode  # PyTorch has no public name for it
from torchvision.models import resnet18, resnet34, vgg16_bn

from mixup_core.config.building import built, parsed, with_values
from mixup_core.images.choices.models import (
    LinearModel,
    Mlp,
    Model,
    NarrowResNet,
    ResNet18,
    ResNet34,
    Timm,
    Vgg16,
    corrections_of_model,
)
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.digests import file_digest
from mixup_core.images.image_data import ImageData
from mixup_core.images.networks import Average, BasicBlock, with_uniform_weights
from mixup_core.images.problem import IMAGES
from mixup_core.keys import run_key
from mixup_core.problem import DataError
from mixup_core.rules import RuleError

TIMM = {"name": "timm", "architecture": "test_resnet"}
"""A network of timm that is small enough for tests."""


def _resnet(published: Any) -> nn.Module:
    network: nn.Module = published(num_classes=10)
    network.conv1 = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False)
    network.maxpool = nn.Identity()
    return network


def _vgg() -> nn.Module:
    return nn.Sequential(vgg16_bn(num_classes=10).features, nn.Flatten(), nn.Linear(512, 10))


@pytest.mark.parametrize(
    ("model", "published"),
    [
        pytest.param(ResNet18(), partial(_resnet, resnet18), id="resnet18"),
        pytest.param(ResNet34(), partial(_resnet, resnet34), id="34", marks=pytest.mark.long),
        pytest.param(Vgg16(), _vgg, id="vgg16"),
    ],
)
def test_networks_match_torchvision_with_another_stem_or_head(model: Model, published: Any) -> None:
    ours, theirs = model.initialised(3, 10, 32, seed=0), published()
    tensors = list(ours.state_dict().values())
    theirs.load_state_dict(dict(zip(theirs.state_dict(), tensors, strict=True)))
    images = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    for mode in (True, False):
        ours.train(mode)
        theirs.train(mode)
        torch.testing.assert_close(ours(images), theirs(images), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("size", "last"), [(28, 1), (33, 2), (8, 1)])
def test_each_pooling_layer_of_vgg16_halves_the_side_rounded_up(size: int, last: int) -> None:
    network = Vgg16(width=4).initialised(3, 10, size, seed=0).eval()
    sides = [size]
    for module in network.modules():
        if isinstance(module, nn.MaxPool2d):
            module.register_forward_hook(lambda _, __, out: sides.append(out.shape[-1]))
    assert network(torch.zeros(1, 3, size, size)).shape == (1, 10)
    assert sides == [-(-size // 2**pool) for pool in range(6)]
    assert sides[-1] == last


def test_the_narrow_resnet_has_the_expected_convolutions_and_ends_of_stages() -> None:
    network: Any = NarrowResNet().initialised(2, 10, 32, seed=0)
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    widths = [(c.in_channels, c.out_channels, c.stride[0]) for c in convolutions]
    assert widths == [
        (2, 12, 2),
        (12, 12, 1), (12, 12, 1),
        (12, 24, 2), (24, 24, 1), (12, 24, 2),
        (24, 48, 2), (48, 48, 1), (24, 48, 2),
    ]  # fmt: skip
    shapes = []
    for layer in network.hidden_layers:
        layer.register_forward_hook(lambda _, __, hidden: shapes.append(hidden.shape[1:]))
    network(torch.zeros(2, 2, 32, 32))
    assert shapes == [(12, 16, 16), (24, 8, 8), (48, 4, 4)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scaled(Model):
    name: ClassVar = "scaled"
    has_batch_norm: ClassVar = False

    def network(self, in_channels: int, num_classes: int, image_size: int) -> nn.Module:
        layer = nn.Linear(in_channels * image_size**2, num_classes)
        nn.init.normal_(layer.weight, std=5.0)
        return nn.Sequential(nn.Flatten(), nn.LayerNorm(in_channels * image_size**2), layer)


MODELS = [
    pytest.param(
        parsed(Model, name), id=name,
        marks=[pytest.mark.long] if name in {"resnet34", "vgg16-bn"} else [],
    )
    for name in Model.catalogue
    if name != "timm"
]  # fmt: skip
"""Models as parameters; those that take seconds are marked `long`."""


@pytest.mark.parametrize("model", [*MODELS, parsed(Model, TIMM), Scaled()])
def test_initial_weights_follow_the_seed_and_leave_the_global_generator_unchanged(
    model: Model,
) -> None:
    before = torch.get_rng_state()
    first, again, other = (model.initialised(1, 10, 8, seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("model", MODELS)
def test_initial_weights_have_the_spread_of_pytorchs_defaults(model: Model) -> None:
    network = model.initialised(2, 10, 8, seed=0)
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            bound = module.weight[0].numel() ** -0.5
            assert module.weight.abs().max() <= bound
            assert float(module.weight.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.15)
        if isinstance(module, nn.Linear):
            assert -bound <= module.bias.min() < 0 < module.bias.max() <= bound


def test_an_mlp_has_the_hidden_layers_of_its_list() -> None:
    models = (Mlp(hidden=()), LinearModel(), Mlp(hidden=(8,)))
    empty, linear, narrow = (list(m.initialised(1, 10, 4, seed=0).parameters()) for m in models)
    assert [tuple(part.shape) for part in empty] == [(10, 16), (10,)]
    assert [tuple(part.shape) for part in narrow] == [(8, 16), (8,), (10, 8), (10,)]
    assert all(map(torch.equal, empty, linear))
    assert [corrections_of_model(model) for model in (Mlp(hidden=()), Mlp())] == [1, 0]


def test_a_model_keeps_the_initial_weights_that_its_constructor_draws() -> None:
    weight = Scaled().initialised(1, 4, 28, 0).state_dict()["2.weight"]
    assert float(weight.std()) == pytest.approx(5.0, rel=0.05)


def test_a_layer_without_a_rule_for_initial_weights_is_refused() -> None:
    with pytest.raises(AssertionError, match="no rule for the initial weights of LayerNorm"):
        with_uniform_weights(lambda: nn.LayerNorm(4), seed=0)


class _Convolutions(TorchDispatchMode):
    """Records input channels, side of the kernel and stride of each convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[int, int, int]] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.convolution.default:
            _, weight, _, stride, *_ = args
            self.seen.add((weight.shape[1], weight.shape[2], stride[0]))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("model", MODELS)
def test_no_network_uses_a_narrow_strided_1x1_convolution(model: Model) -> None:
    """The gradient overruns memory with 2 to 7 channels, on CPUs with AVX2 and without AVX-512."""
    if hasattr(model, "width"):
        model = with_values(model, {"width": 2})
    built = model.initialised(2, 10, 16, seed=0)
    with _Convolutions() as convolutions:
        built(torch.zeros(2, 2, 16, 16))
    narrow = {(1 < channels < 8, side, stride > 1) for channels, side, stride in convolutions.seen}
    assert (True, 1, True) not in narrow
    assert bool(convolutions.seen) == any(isinstance(m, nn.Conv2d) for m in built.modules())


@pytest.mark.parametrize("channels", [1, 2, 5, 8, 16])
@pytest.mark.parametrize("side", [5, 8])
def test_a_narrow_strided_projection_equals_a_strided_1x1_convolution(
    channels: int, side: int
) -> None:
    """With few channels, the gradient of PyTorch's own convolution overruns memory on AVX2."""
    rng = torch.Generator().manual_seed(0)
    images = torch.randn(3, channels, side, side, generator=rng, dtype=torch.float64)
    (projection, _) = BasicBlock(channels, 2 * channels, 2).shortcut.children()
    assert isinstance(projection, nn.Conv2d)
    projection.double()
    expected = torch.einsum("oi,bihw->bohw", projection.weight[..., 0, 0], images[..., ::2, ::2])
    torch.testing.assert_close(projection(images), expected)


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_the_average_equals_the_averaged_model_of_pytorch_bit_for_bit(decay: float) -> None:
    own = NarrowResNet(width=2).initialised(1, 4, 8, seed=0).train()
    ours = Average(own, decay)
    theirs = AveragedModel(own, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True)
    for step in range(5):
        with torch.no_grad():
            own(torch.full((3, 1, 8, 8), float(step)))  # moves statistics and counters of BatchNorm
            for parameter in own.parameters():
                parameter.mul_(1.25).add_(0.1)
        for average in (ours, theirs):
            average.update_parameters(own)
        kept, expected = ours.state_dict(), theirs.state_dict()
        assert kept.keys() == expected.keys()
        assert all(torch.equal(kept[name], expected[name]) for name in kept)


SMALL = "resnet10t"


def _config(**values: Any) -> TrainConfig:
    model = {"name": "timm", "architecture": SMALL} | values
    fixed = {"data.name": "digits", "data.image_size": 32, "epochs": 1, "batch_size": 500}
    return built(TrainConfig, fixed | {"model": model, "data.num_train": 40})


def test_a_timm_network_has_the_weight_spread_of_timm() -> None:
    import timm  # slow to load

    own = Timm(architecture=SMALL).initialised(1, 4, 32, 0).state_dict()
    with torch.random.fork_rng(devices=[]):
        published = timm.create_model(SMALL, in_chans=1, num_classes=4).state_dict()
    assert own.keys() == published.keys()
    weight = "layer1.0.conv1.weight"
    assert float(own[weight].std()) == pytest.approx(float(published[weight].std()), rel=0.1)


def test_a_fixed_size_architecture_is_built_for_the_image_size() -> None:
    model = Timm(architecture="vit_tiny_patch16_224")
    assert model.initialised(3, 4, 32, 0).eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 4)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_pretrained_weights_are_loaded_except_for_the_classifier(
    tmp_path: Path, suffix: str
) -> None:
    from safetensors.torch import save_file

    file = tmp_path / f"weights{suffix}"
    weights = Timm(architecture=SMALL).initialised(3, 7, 32, seed=5).state_dict()
    save_file(weights, file) if suffix == ".safetensors" else torch.save(weights, file)
    network = Timm(architecture=SMALL, weights=str(file)).initialised(3, 4, 32, seed=0)
    own = network.state_dict()
    assert own["fc.weight"].shape[0] == 4
    assert all(torch.equal(own[n], weights[n]) for n in weights if not n.startswith("fc."))


def test_keys_depend_on_the_digest_of_the_weights_file_and_not_its_path(tmp_path: Path) -> None:
    content = Timm(architecture=SMALL).initialised(1, 10, 32, seed=5).state_dict()
    for name, file in (("a", "a.pt"), ("b", "b.pt")):
        torch.save(content | {"fc.bias": torch.full((10,), ord(name))}, tmp_path / file)
    with pytest.raises(RuleError, match="weights_digest"):
        run_key(_config(weights="a.pt"))
    prepared = [ImageData().prepare(_config(weights=w), tmp_path) for w in ("a.pt", "b.pt")]
    (tmp_path / "moved.pt").write_bytes((tmp_path / "a.pt").read_bytes())
    moved = ImageData().prepare(_config(weights="moved.pt"), tmp_path)
    assert len({run_key(config) for config in (*prepared, moved, _config())}) == 3
    assert run_key(moved) == run_key(prepared[0])
    assert next(iter(IMAGES.start(prepared[0], None, "cpu"))).metrics["train/loss"] > 0
    (tmp_path / "a.pt").write_bytes(b"other")
    with pytest.raises(DataError, match="changed since the study was read"):
        IMAGES.start(prepared[0], None, "cpu")
    with pytest.raises(DataError, match=r"c\.pt: not found"):
        ImageData().prepare(_config(weights="c.pt"), tmp_path)


def test_an_unknown_architecture_or_a_wrong_weights_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no architecture 'resnet9' \(did you mean resnet"):
        Timm(architecture="resnet9").initialised(1, 4, 32, seed=0)
    file = tmp_path / "weights.pt"
    for content in (b"no weights", exec):  # code is not loaded, and so not executed
        file.write_bytes(content) if isinstance(content, bytes) else torch.save(content, file)
        model = Timm(architecture=SMALL, weights=str(file), weights_digest=file_digest(file))
        with pytest.raises(DataError, match=r"not a readable file of weights \(UnpicklingError"):
            model.initialised(1, 4, 32, seed=0)
    torch.save(Timm(architecture=SMALL).initialised(3, 4, 32, seed=0).state_dict(), file)
    with pytest.raises(DataError, match="another architecture or to another number of channels"):
        Timm(architecture=SMALL, weights=str(file)).initialised(1, 4, 32, seed=0)
