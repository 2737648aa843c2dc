"""Networks that torch does not provide, those of timm, initial weights, and moving averages."""

import math
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from mixup_core.images.data.digests import file_digest
from mixup_core.problem import DataError
from mixup_core.seeding import Seeds, stream_seed


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut (He et al. 2016, arXiv:1512.03385, figure 5 left)."""

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv3x3(in_channels, channels, stride)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = _conv3x3(channels, channels, 1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1:  # so do the channels change
            self.shortcut = nn.Sequential(
                _Projection(in_channels, channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, images: Tensor) -> Tensor:
        hidden = torch.relu(self.bn1(self.conv1(images)))
        return torch.relu(self.bn2(self.conv2(hidden)) + self.shortcut(images))


class ResNet(nn.Module):
    """A ResNet for small images: 3x3 stem, no max-pooling, stages, global average, linear layer.

    Each stage has twice the channels of the one before, and half the height and width.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        width: int,
        num_blocks: Sequence[int],
        stem_stride: int,
    ) -> None:
        super().__init__()
        # Frozen: names and order of the layers in this file. After a change, stored states cannot
        # be loaded and weights are drawn in another order; `make same-bits BASE=main` fails.
        self.conv1 = _conv3x3(in_channels, width, stem_stride)
        self.bn1 = nn.BatchNorm2d(width)
        blocks: list[nn.Module] = []
        self.hidden_layers: list[nn.Module] = []
        """Layers whose outputs the operation `manifold` can mix, from first to last."""
        channels = width
        for stage, count in enumerate(num_blocks):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(BasicBlock(channels, width * 2**stage, stride))
                channels = width * 2**stage
            self.hidden_layers.append(blocks[-1])
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        hidden = torch.relu(self.bn1(self.conv1(images)))
        logits: Tensor = self.fc(self.blocks(hidden).mean(dim=(2, 3)))
        return logits


class _Sequence(nn.Sequential):
    """Layers in sequence; the attribute `hidden_layers` lists those that end a stage."""

    def __init__(self, *layers: nn.Module, hidden: type[nn.Module]) -> None:
        super().__init__(*layers)
        self.hidden_layers = [layer for layer in layers if isinstance(layer, hidden)]


def vgg16_bn(
    in_channels: int, num_classes: int, width: int, num_convolutions: Sequence[int]
) -> nn.Module:
    """Return VGG-16 (configuration D) with BatchNorm, a global average and one linear layer.

    The source's three large linear layers, made for 224 pixels, and their dropout are left out, as
    is usual for small images. Max-pooling rounds odd sides up.

    Source: Simonyan and Zisserman 2015, arXiv:1409.1556, table 1.
    """
    layers: list[nn.Module] = []
    channels = in_channels
    for stage, count in enumerate(num_convolutions):
        size = min(2**stage, 8) * width
        for _ in range(count):
            layers += [nn.Conv2d(channels, size, 3, padding=1), nn.BatchNorm2d(size), nn.ReLU()]
            channels = size
        layers.append(nn.MaxPool2d(2, ceil_mode=True))
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, num_classes)]
    return _Sequence(*layers, *head, hidden=nn.MaxPool2d)


def mlp(sizes: Sequence[int]) -> nn.Module:
    """Return a fully connected ReLU network on the flattened pixels."""
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(sizes[:-1]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return _Sequence(*layers, nn.Linear(sizes[-2], sizes[-1]), hidden=nn.ReLU)


def with_uniform_weights(build: Callable[[], nn.Module], seed: int | Seeds) -> nn.Module:
    """Build a network on the CPU; draw its weights from PyTorch's default uniform distributions."""
    with torch.device("meta"):
        network = build()
    network = network.to_empty(device="cpu")
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    rng = torch.Generator().manual_seed(stream_seed(seed, "initial weights"))
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_parameters()
        elif isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_uniform_(module.weight, a=math.sqrt(5), generator=rng)
            if module.bias is not None:
                bound = 1 / math.sqrt(module.weight[0].numel())
                nn.init.uniform_(module.bias, -bound, bound, generator=rng)
        else:
            own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
            assert not own, f"no rule for the initial weights of {type(module).__name__}"
    return network


def with_its_own_weights(build: Callable[[], nn.Module], seed: int | Seeds) -> nn.Module:
    """Build a network on the CPU with the initial weights that its own constructor draws."""
    before = torch.default_generator.get_state()
    torch.default_generator.manual_seed(stream_seed(seed, "initial weights"))
    try:
        with torch.device("cpu"):
            return build()
    finally:
        torch.default_generator.set_state(before)


class _Projection(nn.Conv2d):
    """A 1x1 convolution with a stride, also for networks of a few channels.

    On CPUs with AVX2 and without AVX-512, PyTorch 2.14 writes beyond its buffers in the gradient of
    such a convolution of 2 to 7 channels in the layout channels_last. With so few channels, the
    pixels that the stride skips are therefore left out before the convolution.
    """

    def forward(self, images: Tensor) -> Tensor:
        if self.in_channels >= _FEWEST_SAFE_CHANNELS:
            return super().forward(images)
        rows, columns = self.stride
        return conv2d(images[:, :, ::rows, ::columns], self.weight)


_FEWEST_SAFE_CHANNELS = 8


def _conv3x3(in_channels: int, channels: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)


class Average(AveragedModel):
    """Exponential moving average of a network's weights; its update does not wait for the device.

    PyTorch's AveragedModel copies its step counter to the device in each update, and the host waits
    for the copy. This class remembers whether an update is the first one, and needs no counter. The
    first update overwrites the copied weights with current ones.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        super().__init__(network, use_buffers=True)
        self._mean_into = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
        self._has_begun = False

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        own, now = ([*part.parameters(), *part.buffers()] for part in (self.module, model))
        self._has_begun = self._has_begun or bool(self.n_averaged)
        for is_float in (True, False):  # the update of a list needs tensors of one kind
            averages, values = (
                [tensor for tensor in part if tensor.is_floating_point() == is_float]
                for part in (own, now)
            )
            if not self._has_begun:
                for average, value in zip(averages, values, strict=True):
                    average.copy_(value)
            elif averages:
                self._mean_into(averages, values, None)
        self.n_averaged += 1


def timm_network(
    architecture: str, in_channels: int, num_classes: int, image_size: int
) -> nn.Module:
    """Return a network of timm with random weights; nothing is downloaded."""
    import timm

    published = timm.get_pretrained_cfg(architecture)
    has_one_size = published is not None and published.fixed_input_size
    size: dict[str, Any] = {"img_size": image_size} if has_one_size else {}
    network: nn.Module = timm.create_model(
        architecture, pretrained=False, in_chans=in_channels, num_classes=num_classes, **size
    )
    return network


def unknown(architecture: str) -> str | None:
    """Return a message if timm has no such architecture, with the nearest names; else None."""
    import timm

    if timm.is_model(architecture):
        return None
    near = get_close_matches(architecture, timm.list_models(), 3)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    return (
        f"model.architecture: timm {timm.__version__} has no architecture {architecture!r}{hint}; "
        'all names: python -c "import timm; print(*timm.list_models())"'
    )


def load_weights(network: nn.Module, file: Path, digest: str | None) -> None:
    """Load pretrained weights into a network."""
    if not file.is_file():
        raise DataError(f"{file}: not found; model.weights must name a file of weights")
    if digest is not None and file_digest(file) != digest:
        raise DataError(
            f"{file}: its weights changed since the study was read; start the study again"
        )
    try:
        weights = _tensors(file)
    except Exception as error:  # damaged files raise errors of many types
        raise DataError(
            f"{file}: not a readable file of weights ({type(error).__name__}: {error})"
        ) from error
    own = network.state_dict()
    classifier = {id(part) for part in network.get_classifier().parameters()}  # type: ignore[operator]
    heads = {name for name, part in network.named_parameters() if id(part) in classifier}
    fitting = {n: weights[n] for n in own if n in weights and weights[n].shape == own[n].shape}
    if wrong := [name for name in own if name not in heads | fitting.keys()]:
        name = wrong[0]
        found = tuple(weights[name].shape) if name in weights else "nothing"
        raise DataError(
            f"{file}: the tensor {name} must have shape {tuple(own[name].shape)}, got {found}; the "
            "weights belong to another architecture or to another number of channels"
        )
    network.load_state_dict(own | fitting)


def _tensors(file: Path) -> dict[str, Tensor]:
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        return dict(load_file(file))
    loaded = torch.load(file, map_location="cpu", weights_only=True)
    return dict(loaded.get("state_dict", loaded))
