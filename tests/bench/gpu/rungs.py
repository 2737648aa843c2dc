"""Rungs: ways to compute a training step, from plain PyTorch to a compiled network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any, Literal

import torch

from mixup_core.images.batches import Draws, batches
from mixup_core.images.config import TrainConfig
from mixup_core.images.forward import Batch, Precision, arithmetic, forward
from mixup_core.images.views import TrainingImages
from tests.bench.gpu.workload import Size, config_of, images_of, network_of

TrainingStep = Callable[[], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """Settings of one way to compute a training step, such as precision and memory layout."""

    precision: Precision = "bfloat16"
    channels_last: bool = True
    fused: bool = True
    """True: PyTorch's fused Adam, one kernel for all parameters."""
    searched: bool = False
    """True: cuDNN tries its kernels and keeps the fastest (`cudnn.benchmark`)."""
    compiled: Literal["default", "max-autotune-no-cudagraphs"] | None = None
    """Mode of `torch.compile`; None: the network is not compiled."""
    mixes: bool = True
    """True: train with the law Beta(1, 1); False: with ERM."""
    is_small: bool = False
    """True: train the network `Size.small` instead of `Size.model`."""


LADDER = {
    "float32, NCHW": Rung(precision="float32", channels_last=False, fused=False),
    "float32, channels_last": Rung(precision="float32", fused=False),
    "tf32, channels_last": Rung(precision="tf32", fused=False),
    "bfloat16, NCHW": Rung(channels_last=False, fused=False),
    "bfloat16, channels_last": Rung(fused=False),
    "+ fused Adam": Rung(),
    "+ fused Adam, ERM": Rung(mixes=False),
    "+ cudnn.benchmark": Rung(searched=True),
    "+ compile": Rung(searched=True, compiled="default"),
    "+ max-autotune": Rung(searched=True, compiled="max-autotune-no-cudagraphs"),
    "small network": Rung(is_small=True),
    "small network, ERM": Rung(is_small=True, mixes=False),
    "small network, compile": Rung(is_small=True, compiled="default"),
}
"""Variants of the training step by name. A name that begins with + extends an earlier variant:
`+ fused Adam` extends `bfloat16, channels_last`; `+ cudnn.benchmark` extends `+ fused Adam`, and
the later ones extend `+ cudnn.benchmark`. Studies of images are trained with `+ fused Adam`, in the
precision that the study sets.
"""


def build(rung: Rung, size: Size, device: torch.device) -> TrainingStep:
    """Return a function that computes one training step, as `rung` says, at each call.

    Each step uses the next full batch of an endless sequence of epochs.
    """
    name = size.data[0]
    config = config_of(size, name, rung.precision, mixes=rung.mixes)
    data, _ = images_of(name)
    network: Any = network_of(size.small if rung.is_small else size.model, data.info)
    layout = torch.channels_last if rung.channels_last else torch.contiguous_format
    network = network.to(device, memory_format=layout)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=rung.fused)
    rows = _endless(config, TrainingImages(data.train, data.info, config.data, 0, device))
    seen = network
    if rung.compiled:  # on a CPU, the graph is captured but no code is generated
        how = {"mode": rung.compiled} if device.type == "cuda" else {"backend": "aot_eager"}
        seen = torch.compile(network, **how)

    def compute(batch: Batch) -> None:
        torch.backends.cudnn.benchmark = rung.searched
        optimizer.zero_grad(set_to_none=True)
        with arithmetic(rung.precision):
            _loss(config, partial(forward, seen, layout=layout), batch).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return lambda: compute(next(rows))


def _loss(config: TrainConfig, network: Any, batch: Batch) -> torch.Tensor:
    logits = batch.logits(partial(network, precision=config.precision))
    losses = config.loss.per_image(logits, batch.labels, batch.partner_labels, batch.lam)
    return losses.mean()


def _endless(config: TrainConfig, images: TrainingImages) -> Iterator[Batch]:
    """Yield the full batches of one epoch after another, without end; skip smaller last batches."""
    for epoch in cycle(range(1000)):
        for batch in batches(images, Draws.for_training(config, epoch, images)):
            if len(batch) == config.batch_size:
                yield batch
