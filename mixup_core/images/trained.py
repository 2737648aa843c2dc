"""trained_network: rebuilds the network of a finished run, for use outside this package."""

import torch
from torch import Tensor, nn

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.folders import describe
from mixup_core.images.training import TrainingState


def trained_network(config: TrainConfig, state: bytes) -> tuple[nn.Module, Tensor]:
    """Return the network of a finished run in evaluation mode, on the CPU, and an example input."""
    info, data = describe(config.data), config.data
    trained = TrainingState.initial(config, info, torch.device("cpu"))
    trained.load_bytes(state, [])
    channels = info.channels * data.num_stacked
    size = info.image_size // data.pool
    return trained.network.eval(), torch.zeros(2, channels, size, size)
