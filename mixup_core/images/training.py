"""fit: trains one run epoch by epoch, from the start or from a stored state."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

import io
import math
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from mixup_core.archives import require_unpacked
from mixup_core.contracts import ContractError, first_outside, is_of_plugin
from mixup_core.faults import fault_of
from mixup_core.images.batches import Draws, batches
from mixup_core.images.choices.models import Model
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits, load_once
from mixup_core.images.data.facts import DatasetInfo
from mixup_core.images.data.folders import describe
from mixup_core.images.epoch import Epoch
from mixup_core.images.evaluation import (
    PREDICTED_SPLITS,
    corrupted_means,
    evaluate,
    logits_of,
    predict,
)
from mixup_core.images.feasibility import unfit
from mixup_core.images.forward import (
    Forward,
    arithmetic,
    forward,
    gradient_norms,
    kernels,
    repeatable,
)
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.measuring import probed_values
from mixup_core.images.probes.subject import Subject
from mixup_core.images.views import EvaluationImages, TrainingImages
from mixup_core.laws import Law
from mixup_core.problem import DivergedError, StateError, Teacher
from mixup_core.records import EpochRecord
from mixup_core.seeding import stream

# The first optimizer of a process imports much of torch. Make one now, before a run waits for it.
torch.optim.SGD([torch.empty(0)], lr=0.0)


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
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), clip_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        if self.averaged is not None:
            self.averaged.update_parameters(self.network)

    def networks(self) -> dict[str, nn.Module]:
        """Return the networks to evaluate, by the suffix of their metrics: "" and "_averaged"."""
        averaged = {} if self.averaged is None else {"_averaged": self.averaged}
        return {"": self.network, **averaged}

    def _parts(self) -> dict[str, Any]:
        parts = {"network": self.network, "optimizer": self.optimizer, "averaged": self.averaged}
        return {name: part for name, part in parts.items() if part is not None}


@dataclass(kw_only=True, slots=True)
class Training:
    """A run of image training in progress: an iterator of records, one per epoch."""

    config: TrainConfig
    data: Splits
    device: torch.device
    state: TrainingState
    teacher: Teacher | None = None

    @property
    def records(self) -> list[EpochRecord]:
        return self.state.records

    def __iter__(self) -> Iterator[EpochRecord]:
        return (item for item in self.gradually() if isinstance(item, EpochRecord))

    def gradually(self) -> Iterator[EpochRecord | float]:
        return fit_gradually(
            self.config, self.data, self.state, device=self.device, teacher=self.teacher
        )

    def to_bytes(self) -> bytes:
        return self.state.to_bytes()

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        self.state.load_bytes(content, records)

    def predictions(self) -> bytes:
        networks = self.state.networks()
        predictions = predict(self.config, self.data, networks, self.device, self.state.logits)
        return predictions.to_bytes()


def start(
    config: TrainConfig, data_root: Path | None, device: str, teacher: Teacher | None = None
) -> Training:
    """Return a run before its first epoch; a machine downloads and decodes its images once."""
    data, place = load_once(config.data, data_root), torch.device(device)
    state = TrainingState.initial(config, data.info, place)
    return Training(config=config, data=data, device=place, state=state, teacher=teacher)


def fit(
    config: TrainConfig,
    data: Splits,
    resume: TrainingState | None = None,
    *,
    device: torch.device | str = "cpu",
    teacher: Teacher | None = None,
) -> Iterator[EpochRecord]:
    """Train a run; yield the record of each epoch when the epoch is finished.

    After a record, the caller may store the state, or stop by not requesting the next one. Records
    do not depend on whether the run starts here, is resumed, or continues another run's first
    epochs: on a CPU with one thread they are equal bit for bit, since every draw depends only on
    (seed, purpose, epoch).

    Example:
        >>> from mixup_core.images.choices.models import Mlp
        >>> from mixup_core.images.config import DataConfig, TrainConfig
        >>> from mixup_core.images.data.datasets import load
        >>> data = DataConfig(name="digits")
        >>> config = TrainConfig(data=data, model=Mlp(), epochs=1, batch_size=128)
        >>> from mixup_core.images.training import fit
        >>> for record in fit(config, load(data)):
        ...     print(record.epoch, record.metrics["test/error"] < 0.5)
        0 True
    """
    items = fit_gradually(config, data, resume, device=device, teacher=teacher)
    return (item for item in items if isinstance(item, EpochRecord))


def fit_gradually(
    config: TrainConfig,
    data: Splits,
    resume: TrainingState | None = None,
    *,
    device: torch.device | str = "cpu",
    teacher: Teacher | None = None,
) -> Iterator[EpochRecord | float]:
    """Train a run; yield the finished fraction of the epoch after each step, and each record."""
    device = torch.device(device)
    state = resume or TrainingState.initial(config, data.info, device)
    images = TrainingImages(data.seen_by(config.data), data.info, config.data, config.seeds, device)
    held_out = {
        split: EvaluationImages(part, data.info, config.data, device)
        for split, part in data.held_out(config.data).items()
    }
    taught_by = None if teacher is None else _taught_by(teacher, config, data.info, device)
    for epoch in range(len(state.records), config.epochs):
        how, loss = config.in_epoch(epoch), config.loss
        steps = _train_epoch(config, epoch, how, state, images, taught_by)
        means = yield from repeatable(steps, deterministic=config.deterministic)
        with kernels(deterministic=config.deterministic):
            metrics = {f"train/{name}": value for name, value in means.items()}
            if how.lacks_excess(loss) is None:
                least = how.floor(loss, images.labels, config.batch_size) or 0.0
                lowest = how.objective.floor(least)
                metrics["train/excess_loss"] = means["loss"] - (lowest or 0.0)
            evaluated: dict[tuple[str, str], Tensor] = {}
            if (epoch + 1) % config.eval_every == 0:
                for (split, part), (suffix, network) in product(
                    held_out.items(), state.networks().items()
                ):
                    logits = logits_of(network, part, config.precision)
                    _require_logits(config.model, logits, (len(part), data.info.num_classes))
                    measured = evaluate(logits, part.labels)
                    metrics |= {f"{split}/{name}{suffix}": v for name, v in measured.items()}
                    if split in PREDICTED_SPLITS:
                        evaluated[split, suffix] = logits
                metrics |= corrupted_means(metrics)
                state.logits = evaluated if epoch + 1 == config.epochs else {}
            subject = Subject(
                config=config,
                epoch=epoch,
                info=data.info,
                network=state.network.eval(),
                images=images,
                held_out={name: held_out[name] for name in PREDICTED_SPLITS if name in held_out},
                teacher=taught_by,
                evaluated=evaluated,
            )
            metrics |= probed_values(subject, config.probes, config.eval_every)
            if not all(math.isfinite(value) for value in metrics.values()):
                raise DivergedError(f"metrics must be finite, got ({epoch=}, {metrics}).", epoch)
        record = EpochRecord(epoch=epoch, metrics=metrics)
        state.records.append(record)
        yield record


def _taught_by(
    teacher: Teacher, config: TrainConfig, info: DatasetInfo, device: torch.device
) -> Forward:
    """Return a function that maps images to the teacher's logits."""
    for reason in unfit(config, teacher.config):
        raise reason
    state = TrainingState.initial(teacher.config, info, device)
    state.load_bytes(teacher.state, [])
    return partial(forward, state.network.eval(), precision=teacher.config.precision)


def _train_epoch(  # noqa: PLR0913  no two arguments belong together
    config: TrainConfig,
    epoch: int,
    how: Epoch,
    state: TrainingState,
    images: TrainingImages,
    teacher: Forward | None,
) -> Generator[float, None, dict[str, float]]:
    """Train one epoch; return means over its images: `loss` and what the objective measures."""
    draws, loss = Draws.for_training(config, epoch, how, images), config.loss
    student = partial(forward, state.network, precision=config.precision)
    state.network.train()
    measured: dict[str, list[Tensor]] = defaultdict(list)
    num_steps = len(draws.sizes)
    saliency = partial(gradient_norms, state.network, loss, config.precision)
    weights: list[Tensor] = []
    for step, batch in enumerate(batches(images, draws, saliency), epoch * num_steps):
        weights.append(batch.lam)
        with arithmetic(config.precision):
            minimised = how.objective.on(batch, student, loss, teacher)
            state.optimizer.zero_grad(set_to_none=True)
            minimised.loss.backward()  # type: ignore[no-untyped-call]
        factor = config.lr_schedule.factor(step, num_steps, config.epochs)
        state.step(config.optimizer.lr * factor, config.optimizer.clip_norm)
        measured["loss"].append(minimised.loss.detach())
        _require_declared(how.objective, minimised.measured)
        for name, value in minimised.measured.items():
            measured[name].append(value)
        yield len(measured["loss"]) / num_steps
    is_made_by_plugin = any(map(is_of_plugin, (how.operation, how.second, images.augmentation)))
    if is_made_by_plugin:
        _require_weights(weights, draws, how, epoch)
    try:
        means = _means(measured, draws.sizes, epoch, how.law, config.optimizer.lr)
    except DivergedError:
        if is_made_by_plugin:
            _require_finite(images, draws, epoch)
        raise
    if is_made_by_plugin and not math.isfinite(batch.mixed.sum()):
        _require_finite(images, draws, epoch)
    return means


def _require_weights(weights: list[Tensor], draws: Draws, how: Epoch, epoch: int) -> None:
    """Check the label weights of all batches of an epoch."""
    if (found := first_outside(weights)) is None:
        return
    batch, value = found
    mixer = draws.mixers[batch]
    operation = how.operation if mixer is None else mixer.operation
    if not (operation.needs_saliency and math.isnan(value)):  # else the network has diverged
        at = f"in epoch {epoch}, batch {batch}; it must be in [0, 1]"
        raise ContractError(operation, f"returned the label weight {value:g} {at}")


def _require_finite(images: TrainingImages, draws: Draws, epoch: int) -> None:
    """Mix the images of an epoch again, to find out if a plugin made images that are not finite."""

    def even(images: Tensor, labels: Tensor) -> Tensor:  # that of a network without NaN
        del labels
        return images.new_ones(len(images), *images.shape[2:])

    for number, batch in enumerate(batches(images, draws, even)):
        if not batch.mixed.isfinite().all():
            mixer = draws.mixers[number]
            is_mixing = mixer is not None and bool(batch.images.isfinite().all())
            part = mixer.operation if mixer is not None and is_mixing else images.augmentation
            raise ContractError(
                part, f"returned images that are not finite, in epoch {epoch}, batch {number}"
            )


def _require_logits(model: Model, logits: Tensor, expected: tuple[int, int]) -> None:
    if (got := tuple(logits.shape)) != expected:
        what = f"returned logits of shape {got} in evaluation mode, expected {expected}"
        raise ContractError(model, what)


def _require_declared(objective: Objective, measured: Mapping[str, Tensor]) -> None:
    if unknown := sorted({f"train/{name}" for name in measured} - objective.metrics.keys()):
        raise ValueError(
            f"the objective {objective.tag} measures {', '.join(unknown)}, which its `metrics` do "
            "not declare; declare them there"
        )


def _means(
    measured: Mapping[str, list[Tensor]], sizes: list[int], epoch: int, law: Law, lr: float
) -> dict[str, float]:
    """Return the mean per image of each measurement; only here the host waits for the device."""
    values = {name: torch.stack(parts).cpu() for name, parts in measured.items()}
    broken = torch.nonzero(~values["loss"].isfinite()).flatten()
    if len(broken):
        batch = int(broken[0])
        raise DivergedError(
            "training loss must be finite, "
            f"got (loss={float(values['loss'][batch])}, {epoch=}, {batch=}, {law=}, {lr=}).",
            epoch,
        )
    weights = torch.tensor(sizes, dtype=torch.float64)
    return {
        name: float((value.double() * weights).sum() / weights.sum())
        for name, value in values.items()
    }


@torch.no_grad()
def move_one_weight(network: nn.Module, seed: int) -> None:
    """Move one weight to the next larger float32 number."""
    layers = [part for part in network.modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    index = int(stream(seed, "rounding").integers(sum(part.weight.numel() for part in layers)))
    for weight in (part.weight.view(-1) for part in layers):
        if index < len(weight):
            above = torch.tensor(torch.inf, device=weight.device)
            weight[index] = torch.nextafter(weight[index], above)
            return
        index -= len(weight)


def trained_network(config: TrainConfig, state: bytes) -> tuple[nn.Module, Tensor]:
    """Return the network of a finished run in evaluation mode, on the CPU, and an example input."""
    info = describe(config.data)
    trained = TrainingState.initial(config, info, torch.device("cpu"))
    trained.load_bytes(state, [])
    channels, size = config.data.input_shape(info)
    return trained.network.eval(), torch.zeros(2, channels, size, size)
