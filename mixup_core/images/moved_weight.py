"""move_one_weight: the smallest possible change of a run, to measure the effect of rounding."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

import torch
from torch import nn

from mixup_core.seeding import stream


@torch.no_grad()
def move_one_weight(network: nn.Module, seed: int) -> None:
    """Move one weight to the next larger float32 number.

    A processor that sums convolutions in another order makes changes as small as this one. The
    effect on the metrics therefore shows how much a result depends on the machine.
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
