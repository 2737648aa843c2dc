"""move_one_weight: the least change of a run, to see how far rounding alone carries it."""

import torch
from torch import nn

from mixup_core.seeding import stream


@torch.no_grad()
def move_one_weight(network: nn.Module, seed: int) -> None:
    """Move one weight to the next float32 number above it.

    The sum of a convolution in another order, as on another processor, changes as little; so what
    follows from it is what a run owes to the machine it was trained on.

    Args:
        network: With its initial weights.
        seed: Chooses the weight, each of those of convolutions and linear layers as likely.
    """
    weights = [
        module.weight.view(-1)
        for module in network.modules()
        if isinstance(module, nn.Conv2d | nn.Linear)
    ]
    index = int(stream(seed, "rounding").integers(sum(len(weight) for weight in weights)))
    for weight in weights:
        if index < len(weight):
            above = torch.tensor(torch.inf, device=weight.device)
            weight[index] = torch.nextafter(weight[index], above)
            return
        index -= len(weight)
