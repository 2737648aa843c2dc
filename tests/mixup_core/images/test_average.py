"""Average: the moving average of weights, by its formula and bit-identical to PyTorch's."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from mixup_core.images.networks import Average


def network(seed: int = 0) -> nn.Module:
    """Return a network with weights, BatchNorm statistics, a counter and an integer buffer."""
    built = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))
    built.register_buffer("whole", torch.arange(4))
    move(built, np.random.default_rng(seed))
    return built


def move(built: nn.Module, rng: np.random.Generator) -> None:
    """Change all parameters and buffers of a network, as a training step may."""
    with torch.no_grad():
        for tensor in (*built.parameters(), *built.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(torch.from_numpy(rng.normal(size=tuple(tensor.shape))))
            else:
                tensor.copy_(torch.from_numpy(rng.integers(0, 1000, tuple(tensor.shape))))


def tensors(built: nn.Module) -> list[torch.Tensor]:
    return [tensor.detach().clone() for tensor in built.state_dict().values()]


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_the_average_equals_the_averaged_model_of_pytorch_bit_for_bit(decay: float) -> None:
    own, rng = network(), np.random.default_rng(2)
    ours = Average(own, decay)
    theirs = AveragedModel(own, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True)
    for _ in range(5):
        move(own, rng)
        for average in (ours, theirs):
            average.update_parameters(own)
        assert ours.state_dict().keys() == theirs.state_dict().keys()
        assert all(map(torch.equal, tensors(ours), tensors(theirs)))
