"""fit: train one run epoch by epoch, from the start or from a stored stage."""

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from mixup_core.images.config import Adam, Optimizer, Sgd, TrainConfig
from mixup_core.images.data.catalog import DatasetInfo
from mixup_core.images.data.datasets import Splits
from mixup_core.images.data.mapped import load_once
from mixup_core.images.evaluation import evaluate
from mixup_core.images.models import build_model
from mixup_core.images.views import EvaluationImages, TrainingImages
from mixup_core.laws import Erm, Law
from mixup_core.mixing import draw_lambdas, draw_partners, loss_floor, mix, mixed_cross_entropy
from mixup_core.problem import DivergedError, StateError, lacks_memory
from mixup_core.records import EpochRecord
from mixup_core.seeding import stream

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(kw_only=True, slots=True)
class TrainingState:
    """What training changes: weights, optimizer moments and the records so far."""

    network: nn.Module
    optimizer: torch.optim.Optimizer
    records: list[EpochRecord]
    """One per finished epoch, epoch 0 first."""

    @classmethod
    def initial(cls, config: TrainConfig, info: DatasetInfo, device: torch.device) -> Self:
        """Return the state before the first epoch, a function of the configuration alone."""
        data = config.data
        network = build_model(
            config.model,
            in_channels=info.channels * (2 if data.views == "concat" else 1),
            num_classes=info.num_classes,
            image_size=info.image_size // data.pool,
            seed=config.seed,
        ).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        return cls(network=network, optimizer=_optimizer(config.optimizer, network), records=[])

    def to_bytes(self) -> bytes:
        """Return weights, buffers and optimizer as bytes; equal states give equal bytes on CPU."""
        buffer = io.BytesIO()
        torch.save(
            {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}, buffer
        )
        return buffer.getvalue()

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        """Take the state that `to_bytes` wrote and the records that belong to it.

        Only tensors and plain values are read (`weights_only=True`): no code in the bytes runs.

        Raises:
            StateError: If the bytes are no state of this run; this one is then of no use either.
        """
        try:
            saved = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
            self.network.load_state_dict(saved["network"])
            self.optimizer.load_state_dict(saved["optimizer"])
        except Exception as error:  # torch raises whatever it stumbles over
            if lacks_memory(error):
                raise
            raise StateError(
                "`a state holds the tensors of its run` must hold, "
                f"got ({len(content)} bytes: {type(error).__name__})."
            ) from error
        self.records = list(records)


@dataclass(kw_only=True, slots=True)
class Training:
    """A run of image training under way (`mixup_core.problem.Process`)."""

    config: TrainConfig
    data: Splits
    device: torch.device
    state: TrainingState

    @property
    def records(self) -> list[EpochRecord]:
        """One per finished epoch, epoch 0 first."""
        return self.state.records

    def __iter__(self) -> Iterator[EpochRecord]:
        """Yield as `fit` does."""
        return fit(self.config, self.data, self.state, device=self.device)

    def to_bytes(self) -> bytes:
        """Return the state as bytes."""
        return self.state.to_bytes()

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        """Take a state as `TrainingState.load_bytes` does."""
        self.state.load_bytes(content, records)


def start(config: TrainConfig, data_root: Path | None, device: str) -> Training:
    """Return a run before its first epoch; its images are fetched and decoded once per machine."""
    data = load_once(config.data, data_root)
    state = TrainingState.initial(config, data.info, torch.device(device))
    return Training(config=config, data=data, device=torch.device(device), state=state)


def fit(
    config: TrainConfig,
    data: Splits,
    resume: TrainingState | None = None,
    *,
    device: torch.device | str = "cpu",
) -> Iterator[EpochRecord]:
    """Train a run and yield a record after each epoch, when its state is consistent.

    The caller reports, stores or stops by not asking again. Whether the run starts here, is
    resumed or forks from another run's first epochs, the records are the same, bit for bit on a
    CPU with one thread: every draw is named by (seed, purpose, epoch) and none is carried over.

    Args:
        config: The run.
        data: Its images, from `mixup_core.images.data.datasets.load(config.data)`.
        resume: State after some epochs, changed in place; None starts from the initial weights.
        device: Where the network and images live.

    Yields:
        The record of each epoch that was not in `resume`, also appended to its records:
        `train/loss` and `train/excess_loss` (nats), and `val/*`, `test/*` where measured.

    Raises:
        DivergedError: If a training loss or an evaluated likelihood is not finite.
    """
    device = torch.device(device)
    state = resume or TrainingState.initial(config, data.info, device)
    images = TrainingImages(data.train, data.info, config.data, config.seed, device)
    held_out = {
        split: EvaluationImages(part, data.info, config.data, device)
        for split, part in (("val", data.val), ("test", data.test))
        if part is not None
    }
    for epoch in range(len(state.records), config.epochs):
        law = config.law_at(epoch)
        loss = _train_epoch(config, epoch, law, state, images)
        floor = loss_floor(law, images.labels, config.mix.partner, config.batch_size)
        metrics = {"train/loss": loss, "train/excess_loss": loss - floor}
        if (epoch + 1) % config.eval_every == 0:
            for split, part in held_out.items():
                measured = evaluate(state.network, part, PRECISIONS[config.precision])
                metrics |= {f"{split}/{name}": value for name, value in measured.items()}
        if not all(math.isfinite(value) for value in metrics.values()):
            raise DivergedError(
                f"`metrics are finite` must hold, got ({epoch=}, {metrics}).", epoch
            )
        record = EpochRecord(epoch=epoch, metrics=metrics)
        state.records.append(record)
        yield record


def _train_epoch(
    config: TrainConfig, epoch: int, law: Law, state: TrainingState, images: TrainingImages
) -> float:
    """Return the mean loss per image of one pass, in nats; everything random is drawn up front."""
    device = images.labels.device
    num_images = len(images)
    order = torch.from_numpy(stream(config.seed, "batch order", epoch).permutation(num_images))
    batch_sizes = [len(batch) for batch in torch.split(order, config.batch_size)]
    scaling = _draw_scaling(config.seed, epoch, num_images).to(device)
    rng = stream(config.seed, "mixing", epoch)
    partners = draw_partners(config.mix.partner, order, batch_sizes, rng).to(device)
    order = order.to(device)
    if config.mix.lam_scope == "batch":
        per_batch = draw_lambdas(law, len(batch_sizes), rng)
        lam = per_batch.repeat_interleave(torch.tensor(batch_sizes)).to(device)
    else:
        lam = draw_lambdas(law, num_images, rng).to(device)

    state.network.train()
    precision = PRECISIONS[config.precision]
    losses = torch.zeros(len(batch_sizes), device=device)
    start = 0
    for index, size in enumerate(batch_sizes):
        part = slice(start, start + size)
        start += size
        own = order[part]
        labels = partner_labels = images.labels[own]
        inputs = images.batch(own, scaling[0, part])
        if law != Erm():
            partner = partners[part]
            partner_labels = images.labels[partner]
            inputs = mix(inputs, images.batch(partner, scaling[1, part]), lam[part])
        inputs = inputs.contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, precision, enabled=precision != torch.float32):
            logits = state.network(inputs)
        loss = mixed_cross_entropy(logits.float(), labels, partner_labels, lam[part])
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        state.optimizer.step()
        losses[index] = loss.detach()
    return _mean_loss(losses.cpu(), batch_sizes, epoch, law, config.optimizer.lr)


def _draw_scaling(seed: int, epoch: int, num_images: int) -> Tensor:
    """Return gamma of each image and of each partner, in epoch order: (2, images), float32."""
    drawn = stream(seed, "view scaling", epoch).random((2, num_images), dtype="float32")
    return torch.from_numpy(drawn)


def _mean_loss(losses: Tensor, batch_sizes: list[int], epoch: int, law: Law, lr: float) -> float:
    broken = torch.nonzero(~losses.isfinite()).flatten()
    if len(broken):
        batch = int(broken[0])
        raise DivergedError(
            "`training loss is finite` must hold, "
            f"got (loss={float(losses[batch])}, {epoch=}, {batch=}, {law=}, {lr=}).",
            epoch,
        )
    sizes = torch.tensor(batch_sizes, dtype=torch.float64)
    return float((losses.double() * sizes).sum() / sizes.sum())


def _optimizer(config: Optimizer, network: nn.Module) -> torch.optim.Optimizer:
    match config:
        case Adam(lr=lr, weight_decay=decay):
            return torch.optim.Adam(network.parameters(), lr=lr, weight_decay=decay, fused=True)
        case Sgd(lr=lr, momentum=momentum, weight_decay=decay):
            return torch.optim.SGD(
                network.parameters(), lr=lr, momentum=momentum, weight_decay=decay, fused=True
            )
