"""MODELS: name to network. Initial weights come from the run's own stream."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from mixup_core.images.config import Mlp, Model, NarrowResNet, ResNet18
from mixup_core.seeding import stream_seed


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut: He et al. 2016, arXiv:1512.03385, figure 5 left."""

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv3x3(in_channels, channels, stride)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = _conv3x3(channels, channels, 1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, images: Tensor) -> Tensor:
        """Return (batch, channels, height / stride, width / stride)."""
        hidden = torch.relu(self.bn1(self.conv1(images)))
        return torch.relu(self.bn2(self.conv2(hidden)) + self.shortcut(images))


class ResNet(nn.Module):
    """A ResNet for small images: a 3x3 stem without max-pooling, stages, global average, linear."""

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        stem_stride: int,
        stages: Sequence[tuple[int, int, int]],
    ) -> None:
        """Build the network.

        Args:
            in_channels: Channels of the images, both views counted.
            num_classes: Length of the logits.
            stem_stride: Stride of the first convolution.
            stages: (channels, blocks, stride of the first block) of each stage.
        """
        super().__init__()
        channels = stages[0][0]
        self.conv1 = _conv3x3(in_channels, channels, stem_stride)
        self.bn1 = nn.BatchNorm2d(channels)
        blocks = []
        for stage_channels, num_blocks, stride in stages:
            for block in range(num_blocks):
                blocks.append(BasicBlock(channels, stage_channels, stride if block == 0 else 1))
                channels = stage_channels
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits, (batch, classes)."""
        hidden = torch.relu(self.bn1(self.conv1(images)))
        logits: Tensor = self.fc(self.blocks(hidden).mean(dim=(2, 3)))
        return logits


def resnet18(model: ResNet18, in_channels: int, num_classes: int, image_size: int) -> nn.Module:
    """Return ResNet-18 with the CIFAR stem; 11,173,386 parameters for 2 channels, 10 classes."""
    del image_size
    width = model.width or 64
    stages = [(width, 2, 1), (2 * width, 2, 2), (4 * width, 2, 2), (8 * width, 2, 2)]
    return ResNet(in_channels, num_classes, 1, stages)


def narrow_resnet(
    model: NarrowResNet, in_channels: int, num_classes: int, image_size: int
) -> nn.Module:
    """Return three single-block stages behind a stride-2 stem: seconds per run on a CPU."""
    del image_size
    width = model.width or 12
    return ResNet(
        in_channels, num_classes, 2, [(width, 1, 1), (2 * width, 1, 2), (4 * width, 1, 2)]
    )


def mlp(model: Mlp, in_channels: int, num_classes: int, image_size: int) -> nn.Module:
    """Return a ReLU network over the flattened pixels, hidden layers 300 and 100 by default."""
    sizes = [in_channels * image_size**2, *(model.hidden or (300, 100))]
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], num_classes))


MODELS: dict[str, Callable[[Any, int, int, int], nn.Module]] = {
    "resnet18": resnet18,
    "narrow-resnet": narrow_resnet,
    "mlp": mlp,
}
"""Name to function of (configuration, input channels, classes, image size)."""


def build_model(
    model: Model, in_channels: int, num_classes: int, image_size: int, seed: int
) -> nn.Module:
    """Return a network on the CPU with the initial weights of a seed.

    The weights follow PyTorch's own defaults, drawn from the stream `initial weights`: every arm
    of a seed starts from the same ones, and no global generator is touched.
    """
    with torch.device("meta"):
        network = MODELS[model.name](model, in_channels, num_classes, image_size)
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
    return network


def _conv3x3(in_channels: int, channels: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
