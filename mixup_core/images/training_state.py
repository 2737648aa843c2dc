"""TrainingState: what training changes, as bytes too: weights, averages, optimizer and records."""

import io
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from mixup_core.archives import require_unpacked
from mixup_core.faults import fault_of
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.facts import DatasetInfo
from mixup_core.problem import StateError
from mixup_core.records import AVERAGED, EpochRecord
from mixup_core.seeding import stream

# The first optimizer of a process imports much of torch. Make one now, before a run waits for it.
torch.optim.SGD([torch.empty(0)])


@dataclass(kw_only=True, slots=True)
class TrainingState:
    """The state that training changes: weights, their average, optimizer state and records."""

    network: nn.Module
    optimizer: torch.optim.Optimizer
    averaged: AveragedModel | None = None
    """Network with the averaged weights; None if the run keeps no average."""
    records: list[EpochRecord] = field(default_factory=list)
    """Records of the finished epochs, in order."""
    logits: dict[tuple[str, str], Tensor] = field(default_factory=dict)
    """Logits, (images, classes), by split and network, from the evaluation after the last epoch.
    Empty before it, and after a state is loaded.
    """

    @classmethod
    def initial(cls, config: TrainConfig, info: DatasetInfo, device: torch.device) -> Self:
        """Return the state before the first epoch, computed from `config` and `info` alone."""
        channels, size = config.data.input_shape(info)
        network = config.model.initialised(
            in_channels=channels,
            num_classes=info.num_classes,
            image_size=size,
            seed=config.seeds,
        )
        if "rounding" in {config.vary, config.redraw}:
            move_one_weight(network, config.seed)
        network = network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        averaged = None if config.averaging is None else config.averaging.of(network)
        optimizer = config.optimizer.over(network.parameters())
        return cls(network=network, optimizer=optimizer, averaged=averaged)

    def to_bytes(self) -> bytes:
        """Return this state (weights, average, optimizer state) as bytes, for `load_bytes`."""
        buffer = io.BytesIO()
        parts = {name: part.state_dict() for name, part in self._parts().items()}
        torch.save(parts, buffer)
        return buffer.getvalue()

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        """Load a state that `to_bytes` returned; take the records of its epochs from `records`."""
        self.logits = {}
        try:
            require_unpacked(stream := io.BytesIO(content))
            saved = torch.load(stream, map_location="cpu", weights_only=True)
            for name, part in self._parts().items():
                part.load_state_dict(saved[name])
        except Exception as error:  # torch raises errors of many types
            if fault_of(error):
                raise
            raise StateError(
                f"{len(content)} bytes are not a training state of this run: they are damaged, or "
                f"belong to another network or optimizer (torch raised {type(error).__name__})."
            ) from error
        self.records = list(records)

    def step(self, rate: float, clip_norm: float | None) -> None:
        """Update the weights with the current gradients, then the averaged weights."""
        # Frozen: order of these floating-point operations. After a change, the last bits of new
        # runs differ from stored runs of the same key; `make same-bits BASE=main` fails.
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), clip_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        if self.averaged is not None:
            self.averaged.update_parameters(self.network)

    def networks(self) -> dict[str, nn.Module]:
        """Return the networks to evaluate, by the suffix of their metrics: "" and `AVERAGED`."""
        averaged = {} if self.averaged is None else {AVERAGED: self.averaged}
        return {"": self.network, **averaged}

    def _parts(self) -> dict[str, Any]:
        # Frozen: these names. After a change, stored results cannot be read;
        # tests/contracts/test_homes.py fails.
        parts = {"network": self.network, "optimizer": self.optimizer, "averaged": self.averaged}
        return {name: part for name, part in parts.items() if part is not None}


@torch.no_grad()
def move_one_weight(network: nn.Module, seed: int) -> None:
    """Move one weight to the next larger float32 number."""
    layers = [part for part in network.modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    index = int(stream(seed, "rounding").integers(sum(part.weight.numel() for part in layers)))
    for weight in (part.weight.view(-1) for part in layers):
        if index < len(weight):
            above = torch.tensor(torch.inf, device=weight.device)
            weight[index] = torch.nextafter(weight[index], above)
            return
        index -= len(weight)
