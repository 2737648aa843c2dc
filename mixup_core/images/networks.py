"""Networks that torch does not provide, and functions that set their initial weights."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

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
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Sequential(
                _Projection(in_channels, channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, images: Tensor) -> Tensor:
        """Return the block's feature maps, (batch, channels, height / stride, width / stride)."""
        hidden = torch.relu(self.bn1(self.conv1(images)))
        return torch.relu(self.bn2(self.conv2(hidden)) + self.shortcut(images))


class ResNet(nn.Module):
    """A ResNet for small images: 3x3 stem, no max-pooling, stages, global average, linear layer."""

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        stem_stride: int,
        stages: Sequence[tuple[int, int, int]],
    ) -> None:
        """Build the network."""
        super().__init__()
        channels = stages[0][0]
        self.conv1 = _conv3x3(in_channels, channels, stem_stride)
        self.bn1 = nn.BatchNorm2d(channels)
        self.blocks = _blocks_of(channels, stages)
        self.hidden_layers: list[nn.Module] = _last_of_stages(self.blocks, stages)
        """Layers whose outputs the operation `manifold` can mix, from first to last."""
        self.fc = nn.Linear(stages[-1][0], num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images, (batch, classes)."""
        hidden = torch.relu(self.bn1(self.conv1(images)))
        logits: Tensor = self.fc(self.blocks(hidden).mean(dim=(2, 3)))
        return logits


class _Sequence(nn.Sequential):
    """Layers in sequence; the attribute `hidden_layers` lists those that end a stage."""

    def __init__(self, *layers: nn.Module, hidden: type[nn.Module]) -> None:
        """Build the sequence."""
        super().__init__(*layers)
        self.hidden_layers = [layer for layer in layers if isinstance(layer, hidden)]


def vgg16_bn(in_channels: int, num_classes: int, width: int) -> nn.Module:
    """Return VGG-16 (configuration D) with BatchNorm, a global average and one linear layer.

    The source's three large linear layers, made for 224 pixels, and their dropout are left out, as
    is usual for small images. Max-pooling rounds odd sides up.

    Source: Simonyan and Zisserman 2015, arXiv:1409.1556, table 1.
    """
    layers: list[nn.Module] = []
    channels = in_channels
    for factor, num_convolutions in ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3)):
        for _ in range(num_convolutions):
            layers += [
                nn.Conv2d(channels, factor * width, 3, padding=1),
                nn.BatchNorm2d(factor * width),
                nn.ReLU(),
            ]
            channels = factor * width
        layers.append(nn.MaxPool2d(2, ceil_mode=True))
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, num_classes)]
    return _Sequence(*layers, *head, hidden=nn.MaxPool2d)


def mlp(sizes: Sequence[int]) -> nn.Module:
    """Return a fully connected ReLU network on the flattened pixels."""
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(sizes[:-1]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return _Sequence(*layers, nn.Linear(sizes[-2], sizes[-1]), hidden=nn.ReLU)


def widening(width: int, num_blocks: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (channels, blocks, stride) of each stage of a ResNet; each has twice the channels."""
    return [(width * 2**i, blocks, 1 if i == 0 else 2) for i, blocks in enumerate(num_blocks)]


def with_uniform_weights(build: Callable[[], nn.Module], seed: int | Seeds) -> nn.Module:
    """Build a network on the CPU; draw its weights from PyTorch's default uniform distributions.

    This function, not the network's constructor, draws them, from the random stream `initial
    weights` and no global generator. Runs with the same network and seed start with equal weights.
    """
    with torch.device("meta"):
        network = build()
    network = network.to_empty(device="cpu")
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
    """Build a network on the CPU with the initial weights that its own constructor draws.

    The constructor draws from PyTorch's global generator. This function seeds the generator from
    the run's random stream `initial weights`, and restores its state afterwards.
    """
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
        """Return feature maps after this 1x1 convolution with a stride."""
        if self.in_channels >= _FEWEST_SAFE_CHANNELS:
            return super().forward(images)
        rows, columns = self.stride
        return conv2d(images[:, :, ::rows, ::columns], self.weight)


_FEWEST_SAFE_CHANNELS = 8


def _conv3x3(in_channels: int, channels: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)


def _blocks_of(channels: int, stages: Sequence[tuple[int, int, int]]) -> nn.Sequential:
    """Return the blocks of all stages; `channels` are those of the first block's input."""
    blocks = []
    for stage_channels, num_blocks, stride in stages:
        for block in range(num_blocks):
            blocks.append(BasicBlock(channels, stage_channels, stride if block == 0 else 1))
            channels = stage_channels
    return nn.Sequential(*blocks)


def _last_of_stages(
    blocks: nn.Sequential, stages: Sequence[tuple[int, int, int]]
) -> list[nn.Module]:
    return [blocks[end - 1] for end in accumulate(num_blocks for _, num_blocks, _ in stages)]
