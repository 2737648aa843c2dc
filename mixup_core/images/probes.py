"""PROBES: tag to what a probe measures on a network, its images and its objective."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from mixup_core.images.batches import Batch, Draws, batches
from mixup_core.images.config import TrainConfig
from mixup_core.images.evaluation import IMAGES_PER_BATCH
from mixup_core.images.forward import forward
from mixup_core.images.losses import LOSSES
from mixup_core.images.objectives import OBJECTIVES, Forward
from mixup_core.images.views import EvaluationImages, TrainingImages


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Subject:
    """What probes look at after an epoch; none of it is changed."""

    config: TrainConfig
    epoch: int
    """0-based, just finished."""
    network: nn.Module
    """In evaluation mode."""
    images: TrainingImages
    held_out: Mapping[str, EvaluationImages]
    """`val` and `test`, where the run has them."""
    teacher: Forward | None = None

    def logits(self, images: Tensor) -> Tensor:
        """Return the network's logits of some images, float32."""
        return forward(self.network, images, self.config.precision)

    def unmixed(self, gamma: float | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield all training images with their labels, some at a time.

        Args:
            gamma: Scale of the own view in concatenated ones; None draws one for each image.
        """
        law, _ = self.config.in_epoch(self.epoch)
        scaling = Draws.for_probing(self.config, self.epoch, law, self.images).scaling[0]
        if gamma is not None:
            scaling = torch.full_like(scaling, gamma)
        for chosen in torch.split(
            torch.arange(len(scaling), device=scaling.device), IMAGES_PER_BATCH
        ):
            yield self.images.batch(chosen, scaling[chosen]), self.images.labels[chosen]

    def mixed(self) -> Iterator[Batch]:
        """Yield all training images mixed by the law in force, drawn for this probe."""
        law, _ = self.config.in_epoch(self.epoch)
        draws = Draws.for_probing(self.config, self.epoch, law, self.images)
        return batches(self.images, draws, law)


@torch.no_grad()
def original_error(subject: Subject) -> dict[str, float]:
    """Return error and mean cross entropy of the training images as they are."""
    logits, labels = _outputs(subject, None)
    return {
        "train/error": _error(logits, labels),
        "train/nll": float(cross_entropy(logits.double(), labels)),
    }


@torch.no_grad()
def view_error(subject: Subject, *, name: str, gamma: float | None) -> dict[str, float]:
    """Return the error of the training images with one scale of the own view."""
    return {name: _error(*_outputs(subject, gamma))}


@torch.no_grad()
def mixup_loss(subject: Subject) -> dict[str, float]:
    """Return the mean loss of mixed images, the infimum over all functions, and the excess."""
    config, loss = subject.config, LOSSES[subject.config.loss]
    law, _ = config.in_epoch(subject.epoch)
    total = 0.0
    for batch in subject.mixed():
        logits = subject.logits(batch.mixed)
        losses = loss.per_image(logits, batch.labels, batch.partner_labels, batch.lam)
        total += float(losses.double().sum())
    mean = total / len(subject.images)
    floor = loss.floor(law, subject.images.labels, config.mix.partner, config.batch_size)
    return {
        "train/mixup_loss": mean,
        "train/mixup_floor": floor,
        "train/mixup_excess": mean - floor,
    }


def gradient_norm(subject: Subject) -> dict[str, float]:
    """Return the 2-norm of the gradient of the objective in force, averaged over all batches."""
    _, objective = subject.config.in_epoch(subject.epoch)
    per_image = LOSSES[subject.config.loss].per_image
    weights = [part for part in subject.network.parameters() if part.requires_grad]
    total = [torch.zeros_like(part, dtype=torch.float64) for part in weights]
    for batch in subject.mixed():
        minimise = OBJECTIVES[objective.tag]
        minimised = minimise(objective, batch, subject.logits, per_image, subject.teacher)
        share = len(batch) / len(subject.images)
        gradients = torch.autograd.grad(minimised.loss, weights)
        for sum_, gradient in zip(total, gradients, strict=True):
            sum_.add_(gradient, alpha=share)
    return {"train/gradient_norm": math.sqrt(sum(float(part.square().sum()) for part in total))}


@torch.no_grad()
def weight_norm(subject: Subject) -> dict[str, float]:
    """Return the 2-norm of all parameters together."""
    squares = (part.double().square().sum() for part in subject.network.parameters())
    return {"train/weight_norm": math.sqrt(sum(map(float, squares)))}


def input_gradient_norm(subject: Subject) -> dict[str, float]:
    """Return, of each split held out, the mean 2-norm of the loss's gradient by the image."""
    per_image = LOSSES[subject.config.loss].per_image
    found = {}
    for split, images in subject.held_out.items():
        norms = []
        for start in range(0, len(images), IMAGES_PER_BATCH):
            part = slice(start, start + IMAGES_PER_BATCH)
            inputs, labels = images[part].requires_grad_(), images.labels[part]
            lam = torch.ones(len(labels), device=labels.device)
            losses = per_image(subject.logits(inputs), labels, labels, lam)
            (gradient,) = torch.autograd.grad(losses.sum(), inputs)
            norms.append(gradient.flatten(1).norm(dim=1).double())
        found[f"{split}/input_gradient_norm"] = float(torch.cat(norms).mean())
    return found


@torch.no_grad()
def el2n(subject: Subject) -> dict[str, float]:
    """Return the mean 2-norm of softmax minus one-hot label."""
    logits, labels = _outputs(subject, None)
    distance = logits.double().softmax(1) - one_hot(labels, logits.shape[1])
    return {"train/el2n": float(distance.norm(dim=1).mean())}


@torch.no_grad()
def neural_collapse(subject: Subject) -> dict[str, float]:
    """Return four measures of the last layer's features h; all tend to 0 in collapse.

    With class means mu_c about their mean, M their matrix, k classes that have images:

        nc1_variability  tr(S_W S_B^+) / k, S_W the scatter within, S_B between classes
        nc2_norms        sd of |mu_c| over its mean
        nc2_angles       mean over pairs of |cos(mu_c, mu_d) + 1 / (k - 1)|
        nc3_duality      | W / |W| - M / |M| |, W the last layer's weight, Frobenius norms
        nc4_disagreement fraction of images whose nearest class mean is not the class predicted

    Nothing is returned where all class means coincide.
    """
    layer = [part for part in subject.network.modules() if isinstance(part, nn.Linear)][-1]
    features: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: features.append(inputs[0].double()))
    try:
        logits, labels = _outputs(subject, None)
    finally:
        hook.remove()
    h = torch.cat(features)
    classes, index = torch.unique(labels, return_inverse=True)
    k = len(classes)
    counts = torch.bincount(index).double().unsqueeze(1)
    means = torch.zeros(k, h.shape[1], dtype=h.dtype, device=h.device).index_add_(0, index, h)
    means /= counts
    centred = means - means.mean(0)
    norms = centred.norm(dim=1)
    if k < 2 or not bool((norms > 0).all()):
        return {}
    _, scale, axes = torch.linalg.svd(centred, full_matrices=False)
    is_axis = scale > scale[0] * 1e-10
    within = ((h - means[index]) @ axes[is_axis].T).square().mean(0)
    units = centred / norms.unsqueeze(1)
    cosines = (units @ units.T)[~torch.eye(k, dtype=torch.bool, device=h.device)]
    weight = layer.weight.double()[classes]
    duality = (weight / weight.norm() - centred / centred.norm()).norm()
    nearest = classes[torch.cdist(h, means).argmin(1)]
    return {
        "train/nc1_variability": float((within / scale[is_axis].square()).sum()),
        "train/nc2_norms": float(norms.std(correction=0) / norms.mean()),
        "train/nc2_angles": float((cosines + 1 / (k - 1)).abs().mean()),
        "train/nc3_duality": float(duality),
        "train/nc4_disagreement": float((nearest != logits.argmax(1)).double().mean()),
    }


PROBES: Mapping[str, Callable[[Subject], dict[str, float]]] = {
    "original-error": original_error,
    "multi-view-error": partial(view_error, name="train/multi_view_error", gamma=None),
    "spurious-error": partial(view_error, name="train/spurious_error", gamma=0.0),
    "true-error": partial(view_error, name="train/true_error", gamma=1.0),
    "mixup-loss": mixup_loss,
    "gradient-norm": gradient_norm,
    "weight-norm": weight_norm,
    "input-gradient-norm": input_gradient_norm,
    "el2n": el2n,
    "neural-collapse": neural_collapse,
}
"""Tag of `mixup_core.images.choices.probes` to function of the subject; keys are whole metrics."""


def measure(subject: Subject) -> dict[str, float]:
    """Return what the probes that are due after an epoch measure."""
    config = subject.config
    subject.network.eval()
    found: dict[str, float] = {}
    for probe in config.probes:
        if (subject.epoch + 1) % (probe.every or config.eval_every) == 0:
            found |= PROBES[probe.tag](subject)
    return found


def _outputs(subject: Subject, gamma: float | None) -> tuple[Tensor, Tensor]:
    """Return logits, (images, classes), and labels of all training images."""
    parts = [(subject.logits(images), labels) for images, labels in subject.unmixed(gamma)]
    return torch.cat([logits for logits, _ in parts]), torch.cat([labels for _, labels in parts])


def _error(logits: Tensor, labels: Tensor) -> float:
    return float((logits.argmax(1) != labels).double().mean())
