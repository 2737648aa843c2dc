"""trained_network: rebuilds the network of a finished run, for use outside this package."""

import torch
from torch import Tensor, nn

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.folders import describe
from mixup_core.images.training import TrainingState


def trained_network(config: TrainConfig, state: bytes) -> tuple[nn.Module, Tensor]:
    """Return the network of a finished run in evaluation mode, on the CPU, and an example input.

    Args:
        config: Configuration of the run.
        state: State of the run after the last epoch (`Process.to_bytes`).

    Returns:
        The network, and two example images of zeros, (2, channels, height, width), float32. The
        network's input is normalised images, made smaller by `data.pool`; if two views are stacked,
        the second is zero. Its output is logits, (batch, classes).
    """
    info, data = describe(config.data), config.data
    trained = TrainingState.initial(config, info, torch.device("cpu"))
    trained.load_bytes(state, [])
    channels = info.channels * data.num_stacked
    size = info.image_size // data.pool
    return trained.network.eval(), torch.zeros(2, channels, size, size)
