"""OWN: checks of a model, law, operation or augmentation by itself, before a run trains with it."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from mixup_core.contracts import first_outside, require_quantiles, weights_of
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.batches import Mixer
from mixup_core.images.choices.models import Model
from mixup_core.images.forward import HiddenMix, forward
from mixup_core.laws import Law
from mixup_core.mixing.linear import mix
from mixup_core.mixing.operation import Operation
from mixup_core.plugins.suite import BrokenError
from mixup_core.rules import RuleError


def _network(model: Model) -> None:
    network = model.initialised(2, 5, 16, seed=0)
    for mode, count in itertools.product((network.train, network.eval), (3, 41)):
        with torch.no_grad():
            logits = mode()(torch.rand(count, 2, 16, 16))
        if tuple(logits.shape) != (count, 5) or logits.dtype != torch.float32:
            raise BrokenError(
                f"the logits of {count} images and 5 classes must be float32 of shape "
                f"({count}, 5), got {logits.dtype} of shape {tuple(logits.shape)} "
                f"in {'training' if network.training else 'evaluation'} mode"
            )
    nn = torch.nn
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
    normalises = any(isinstance(part, kinds) for part in network.modules())
    if normalises != model.has_batch_norm:
        raise BrokenError(
            f"has_batch_norm is {model.has_batch_norm}, but the network has "
            f"{'a' if normalises else 'no'} BatchNorm layer"
        )
    if (found := len(getattr(network, "hidden_layers", ()))) < model.depth:
        raise BrokenError(f"`depth` is {model.depth}, but the network has {found} `hidden_layers`")
    for layer in range(1, model.depth + 1):
        half = HiddenMix(layer=layer, lam=torch.full((3,), 0.5))
        with torch.no_grad():
            mixed = forward(network, torch.rand(6, 2, 16, 16), half, precision="float32")
        if tuple(mixed.shape) != (3, 5):
            raise BrokenError(f"layer {layer} of `hidden_layers` is not used once for each image")


def _law(law: Law) -> None:
    from scipy.stats import kstest

    _weights(law)
    drawn = law.draw(5000, np.random.default_rng(0))
    expected = law.quantiles(np.random.default_rng(1).random(drawn.size))
    if kstest(drawn.ravel(), expected, method="asymp").pvalue < 1e-4:
        raise BrokenError("`draw` and `quantiles` have different distributions")


def _weights(law: Law) -> None:
    require_quantiles(law)
    weights_of(law, (100, 50), np.random.default_rng(0))
    _require_closed_forms(law)


_CLOSE = 2e-3
"""Largest difference between a closed form of a law and a mean over its quantiles; a mean over 4096
quantiles of a function of total variation V is within V / 4096.
"""


def _require_closed_forms(law: Law) -> None:
    """Check the methods that a law overrides against what `Law` computes from its quantiles."""
    plain: Any = SimpleNamespace(
        nodes=lambda count: law.quantiles((np.arange(count) + 0.5) / count)
    )
    nodes = plain.nodes(4096)
    if law.constant is not None and not abs(nodes - law.constant).mean() < _CLOSE:
        raise BrokenError(f"`constant` is {law.constant}, but `quantiles` returns other values")
    usual: Any = Law
    for name, own, expected in (
        ("mean", law.mean, usual.mean.fget(plain)),
        ("variance", law.variance, usual.variance.fget(plain)),
        ("label_entropy", law.label_entropy(), usual.label_entropy(plain)),
        ("moments_within", law.moments_within(*_PART), usual.moments_within(plain, *_PART)),
    ):
        if not np.allclose(own, expected, rtol=0, atol=_CLOSE):
            raise BrokenError(
                f"`{name}` is {own}, but {expected} by the quantiles; correct it, or leave it out"
            )
    if law.is_symmetric and not abs(nodes + nodes[::-1] - 1).mean() < _CLOSE:
        raise BrokenError("`is_symmetric` is True, but lam and 1 - lam have different quantiles")


_PART = (0.2345, 0.6789)
"""Ends of the interval for which `moments_within` is checked."""


def _mixing(operation: Operation, sizes: Sequence[int] = (1, 6, 41, 128)) -> None:
    rng = np.random.default_rng(0)
    if reason := operation.unfit((16, 16)):
        raise RuleError(reason, {"image size": 16})
    for batch, each in itertools.product(sizes, (False, True)):
        own, beside = torch.rand(2, batch, 3, 16, 16).unbind()
        kept = own.clone(), beside.clone()
        lam = rng.random(batch if each else 1)
        lam[1:2], lam[2:3] = 0.0, 1.0
        drawn = torch.from_numpy(operation.draw(lam, (16, 16), rng))
        if (layer := operation.layer(drawn)) > operation.deepest_layer:
            raise BrokenError(f"`layer` is {layer}, `deepest_layer` only {operation.deepest_layer}")
        mixer = Mixer(operation=operation, drawn=drawn, layer=layer)
        weights, saliency = (
            torch.from_numpy(lam).float().expand(batch),
            torch.rand(2, batch, 16, 16),
        )
        mixed, weight, _ = mixer.mix(own, beside, weights, partial(torch.clone, saliency))
        if not (torch.equal(own, kept[0]) and torch.equal(beside, kept[1])):
            raise BrokenError("`mix` modifies the images that it is given")
        if operation.is_linear and not mixed.allclose(mix(own, beside, weights), atol=1e-5):
            raise BrokenError("`is_linear` is True, so training mixes linearly and calls no `mix`")
        if not mixed.isfinite().all():
            raise BrokenError(f"`mix` returned NaN or infinite pixels for {batch} images")
        if found := first_outside([weight]):
            raise BrokenError(
                f"`mix` returned the label weight {found[1]:g} for {batch} images, outside [0, 1]"
            )


def _augmented(augmentation: Augmentation) -> None:
    rng = np.random.default_rng(0)
    for channels, batch in itertools.product((1, 3), (1, 41)):
        pixels = torch.randint(256, (batch, channels, 16, 16), dtype=torch.uint8)
        drawn = augmentation.draw((2, batch), (16, 16), rng)
        values = torch.empty(batch, 0) if drawn is None else torch.from_numpy(drawn)[0]
        images = augmentation.on_images(augmentation.on_pixels(pixels, values).float(), values)
        if images.shape != pixels.shape or not images.isfinite().all():
            raise BrokenError(
                f"images of shape {tuple(pixels.shape)} became {tuple(images.shape)}, or not finite"
            )


OWN: Mapping[str, tuple[str, Callable[[Any], None], Callable[[Any], None]]] = {
    "model": ("the network returns logits, and `has_batch_norm` is right", _network, _network),
    "law": ("quantiles increase within [0, 1], and draws have this distribution", _law, _weights),
    "operation": (
        "label weights are in [0, 1], and its input images stay unchanged",
        _mixing, partial(_mixing, sizes=(7, 41)),
    ),
    "augmentation": ("images of one and of three channels stay images", _augmented, _augmented),
}  # fmt: skip
"""By noun: a statement that only classes of this noun must meet, the function that checks it, and
the function that checks it at the ends of the ranges of fields."""
