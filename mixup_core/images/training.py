"""Training: one run of image training, epoch by epoch, from the start or from a stored state."""

import math
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn

from mixup_core.contracts import ContractError, first_outside, is_of_plugin
from mixup_core.images.batches import Draws, batches
from mixup_core.images.choices.models import Model
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits, load_once
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
    Batch,
    Forward,
    HiddenMix,
    arithmetic,
    forward,
    gradient_norms,
    kernels,
    repeatable,
)
from mixup_core.images.losses import Loss
from mixup_core.images.objectives.objective import Minimised, Objective
from mixup_core.images.probes.measuring import probed_values
from mixup_core.images.probes.subject import Subject
from mixup_core.images.training_state import TrainingState
from mixup_core.images.views import EvaluationImages, TrainingImages
from mixup_core.laws import Law
from mixup_core.problem import DivergedError, Teacher
from mixup_core.records import EpochRecord


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
        config, data, device = self.config, self.data, self.device
        images = TrainingImages(
            data.seen_by(config.data), data.info, config.data, config.seeds, device
        )
        held_out = {
            split: EvaluationImages(part, data.info, config.data, device)
            for split, part in data.held_out(config.data).items()
        }
        known = {split: held_out[split] for split in PREDICTED_SPLITS if split in held_out}
        teacher = self._teacher_network()
        for epoch in range(len(self.records), config.epochs):
            steps = _train_epoch(config, epoch, self.state, images, teacher)
            means = yield from repeatable(steps, deterministic=config.deterministic)
            with kernels(deterministic=config.deterministic):
                metrics = {f"train/{name}": value for name, value in means.items()}
                floor = config.in_epoch(epoch).objective_floor(
                    config.loss, images.labels, config.batch_size
                )
                if floor is not None:
                    metrics["train/excess_loss"] = means["loss"] - floor
                logits: dict[tuple[str, str], Tensor] = {}
                if (epoch + 1) % config.eval_every == 0:
                    logits = self._evaluate(held_out, metrics)
                    self.state.logits = logits if epoch + 1 == config.epochs else {}
                subject = Subject(
                    config=config,
                    epoch=epoch,
                    info=data.info,
                    network=self.state.network.eval(),
                    images=images,
                    held_out=known,
                    teacher=teacher,
                    evaluated=logits,
                )
                metrics |= probed_values(subject, config.probes, config.eval_every)
            if not all(math.isfinite(value) for value in metrics.values()):
                raise DivergedError(f"metrics must be finite, got ({epoch=}, {metrics}).", epoch)
            record = EpochRecord(epoch=epoch, metrics=metrics)
            self.records.append(record)
            yield record

    def _teacher_network(self) -> Forward | None:
        """Return a function that maps images to the teacher's logits."""
        if (teacher := self.teacher) is None:
            return None
        for reason in unfit(self.config, teacher.config):
            raise reason
        state = TrainingState.initial(teacher.config, self.data.info, self.device)
        state.load_bytes(teacher.state, [])
        return partial(forward, state.network.eval(), precision=teacher.config.precision)

    def _evaluate(
        self, held_out: Mapping[str, EvaluationImages], metrics: dict[str, float]
    ) -> dict[tuple[str, str], Tensor]:
        """Add the metrics of held-out images; return the logits of validation and test images."""
        found = {}
        for (split, images), (suffix, network) in product(
            held_out.items(), self.state.networks().items()
        ):
            logits = logits_of(network, images, self.config.precision)
            _require_logits(self.config.model, logits, (len(images), self.data.info.num_classes))
            measured = evaluate(logits, images.labels)
            metrics |= {f"{split}/{name}{suffix}": value for name, value in measured.items()}
            if split in PREDICTED_SPLITS:
                found[split, suffix] = logits
        metrics |= corrupted_means(metrics)
        return found

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
    place = torch.device(device)
    state = resume or TrainingState.initial(config, data.info, place)
    return iter(Training(config=config, data=data, device=place, state=state, teacher=teacher))


def _train_epoch(
    config: TrainConfig,
    epoch: int,
    state: TrainingState,
    images: TrainingImages,
    teacher: Forward | None,
) -> Generator[float, None, dict[str, float]]:
    """Train one epoch; return means over its images: `loss` and what the objective measures."""
    settings, loss = config.in_epoch(epoch), config.loss
    draws = Draws.for_training(config, epoch, images)
    student = partial(forward, state.network, precision=config.precision)
    state.network.train()
    measured: dict[str, list[Tensor]] = defaultdict(list)
    num_steps = len(draws.sizes)
    saliency = partial(gradient_norms, state.network, loss, config.precision)
    weights: list[Tensor] = []
    for step, batch in enumerate(batches(images, draws, saliency), epoch * num_steps):
        weights.append(batch.lam)
        with arithmetic(config.precision):
            # Frozen: order of these floating-point operations. After a change, the last bits of new
            # runs differ from stored runs of the same key; `make same-bits BASE=main` fails.
            minimised = _minimised(settings.objective, batch, student, loss, teacher)
            state.optimizer.zero_grad()
            minimised.loss.backward()  # type: ignore[no-untyped-call]
        factor = config.lr_schedule.factor(step, num_steps, config.epochs)
        state.step(config.optimizer.lr * factor, config.optimizer.clip_norm)
        measured["loss"].append(minimised.loss.detach())
        _require_declared(settings.objective, minimised.measured)
        for name, value in minimised.measured.items():
            measured[name].append(value)
        yield len(measured["loss"]) / num_steps
    is_made_by_plugin = any(
        map(is_of_plugin, (settings.operation, settings.second, images.augmentation))
    )
    if is_made_by_plugin:
        _require_weights(weights, draws, settings, epoch)
    try:
        means = _means(measured, draws.sizes, epoch, settings.law, config.optimizer.lr)
    except DivergedError:
        if is_made_by_plugin:
            _require_finite(images, draws, epoch)
        raise
    if is_made_by_plugin and not math.isfinite(batch.mixed.sum()):
        _require_finite(images, draws, epoch)
    return means


def _minimised(
    objective: Objective, batch: Batch, student: Forward, loss: Loss, teacher: Forward | None
) -> Minimised:
    """Evaluate an objective on a batch; one of a plugin must mix the hidden layer of the batch."""
    if batch.hidden is None or not is_of_plugin(objective):
        return objective.on(batch, student, loss, teacher)
    used: list[HiddenMix | None] = []

    def noted(images: Tensor, hidden: HiddenMix | None = None) -> Tensor:
        used.append(hidden)
        return student(images, hidden)

    found = objective.on(batch, noted, loss, teacher)
    if not any(used):
        raise ContractError(objective, "mixes no hidden layer; call `batch.logits(student)`")
    return found


def _require_weights(weights: list[Tensor], draws: Draws, settings: Epoch, epoch: int) -> None:
    """Check the label weights of all batches of an epoch."""
    if (found := first_outside(weights)) is None:
        return
    batch, value = found
    mixer = draws.mixers[batch]
    operation = settings.operation if mixer is None else mixer.operation
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


def trained_network(config: TrainConfig, state: bytes) -> tuple[nn.Module, Tensor]:
    """Return the network of a finished run in evaluation mode, on the CPU, and an example input."""
    info = describe(config.data)
    trained = TrainingState.initial(config, info, torch.device("cpu"))
    trained.load_bytes(state, [])
    channels, size = config.data.input_shape(info)
    return trained.network.eval(), torch.zeros(2, channels, size, size)
