"""Member contracts: statements that a plugin's models, laws and operations (members) must satisfy.

They are about a model's logits and `has_batch_norm`, a law's quantiles and draws, an operation's
images and label weights. They are checked in addition to the statements about all classes.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from mixup_core.images.choices.models import Model
from mixup_core.laws import Law
from mixup_core.mixing.operation import Operation
from mixup_core.plugins.findings import BrokenError


def _network(model: Model) -> None:
    network = model.initialised(2, 5, 16, seed=0)
    logits = network.eval()(torch.zeros(3, 2, 16, 16))
    if tuple(logits.shape) != (3, 5) or logits.dtype != torch.float32:
        raise BrokenError(
            "the logits of 3 images and 5 classes must be float32 of shape (3, 5), "
            f"got {logits.dtype} of shape {tuple(logits.shape)}"
        )
    nn = torch.nn
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
    normalises = any(isinstance(part, kinds) for part in network.modules())
    if normalises != model.has_batch_norm:
        raise BrokenError(
            f"has_batch_norm is {model.has_batch_norm}, but the network has "
            f"{'a' if normalises else 'no'} BatchNorm layer"
        )


def _law(law: Law) -> None:
    from scipy.stats import kstest

    levels = np.linspace(0, 1, 1001)
    found = law.quantiles(levels)
    if found.shape != levels.shape or not (np.diff(found) >= 0).all():
        raise BrokenError(
            "`quantiles` must return one value per level, none lower than the one before"
        )
    if found[0] < 0 or found[-1] > 1:
        raise BrokenError(f"`quantiles` must be in [0, 1], got {found[0]} to {found[-1]}")
    shape = 100, 50
    drawn = law.draw(shape, np.random.default_rng(0))
    if drawn.shape != shape:
        raise BrokenError(f"`draw` returned the shape {drawn.shape}, expected {shape}")
    expected = law.quantiles(np.random.default_rng(1).random(drawn.size))
    if kstest(drawn.ravel(), expected).pvalue < 1e-4:
        raise BrokenError("`draw` and `quantiles` have different distributions")


def _mixing(operation: Operation) -> None:
    rng = np.random.default_rng(0)
    for count in (1, 6):
        own, beside = torch.rand(2, 6, 3, 16, 16).unbind()
        kept = own.clone(), beside.clone()
        lam = rng.random(count)
        drawn = torch.from_numpy(operation.draw(lam, (16, 16), rng))
        weights = torch.from_numpy(lam).float().expand(6)
        mixed, share = operation.mix(own, beside, weights, drawn)
        if not (torch.equal(own, kept[0]) and torch.equal(beside, kept[1])):
            raise BrokenError("`mix` modifies the images that it is given")
        if (mixed.shape, mixed.dtype) != (own.shape, own.dtype):
            raise BrokenError(
                f"`mix` returned images of shape {tuple(mixed.shape)} in {mixed.dtype}, expected "
                f"{tuple(own.shape)} in {own.dtype}"
            )
        if not bool(((share >= 0) & (share <= 1)).all()):
            raise BrokenError(f"`mix` returned weights of labels outside [0, 1]: {share.tolist()}")


MEMBER_CONTRACTS: Mapping[str, tuple[str, Callable[[Any], None]]] = {
    "model": ("the network returns logits, and `has_batch_norm` is right", _network),
    "law": ("quantiles increase within [0, 1], and draws have this distribution", _law),
    "operation": ("label weights are in [0, 1], and its input images stay unchanged", _mixing),
}
"""Additional check by noun of the entry: a statement, and the function that checks it."""
