"""Average: a network whose weights are a moving average of another network's weights."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Average(AveragedModel):
    """Exponential moving average of a network's weights; its update does not wait for the device.

    PyTorch's AveragedModel copies its step counter to the device in each update, and the host waits
    for the copy. An exponential average needs only to know whether an update is the first one; this
    class remembers it.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        """Copy the network; the first update overwrites the copied weights with current ones."""
        super().__init__(network, use_buffers=True)
        self._mean_into = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
        self._has_begun = False

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Update the average with the current weights of the network that is trained."""
        own, now = ([*part.parameters(), *part.buffers()] for part in (self.module, model))
        self._has_begun = self._has_begun or bool(self.n_averaged > 0)
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
