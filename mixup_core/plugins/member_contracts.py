"""Member contracts: statements that a plugin's models, laws and operations (members) must satisfy.

They are about a model's logits and `has_batch_norm`, a law's quantiles and draws, an operation's
images and label weights. They are checked in addition to the statements about all classes.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mixup_core.contracts import first_outside, require_quantiles, weights_of
from mixup_core.images.choices.models import Model
from mixup_core.images.mixers import Mixer
from mixup_core.laws import Law
from mixup_core.mixing.operation import Operation
from mixup_core.plugins.findings import BrokenError


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


def _law(law: Law) -> None:
    from scipy.stats import kstest

    _weights(law)
    drawn = law.draw(5000, np.random.default_rng(0))
    expected = law.quantiles(np.random.default_rng(1).random(drawn.size))
    if kstest(drawn.ravel(), expected).pvalue < 1e-4:
        raise BrokenError("`draw` and `quantiles` have different distributions")


def _weights(law: Law) -> None:
    require_quantiles(law)
    weights_of(law, (100, 50), np.random.default_rng(0))


def _mixing(operation: Operation, sizes: Sequence[int] = (1, 6, 41, 128)) -> None:
    rng = np.random.default_rng(0)
    for batch in sizes:
        for count in {1, batch}:
            own, beside = torch.rand(2, batch, 3, 16, 16).unbind()
            kept = own.clone(), beside.clone()
            lam = rng.random(count)
            lam[1:2], lam[2:3] = 0.0, 1.0
            drawn = torch.from_numpy(operation.draw(lam, (16, 16), rng))
            mixer = Mixer(operation=operation, drawn=drawn, layer=operation.layer(drawn))
            weights = torch.from_numpy(lam).float().expand(batch)
            mixed, weight, _ = mixer.mix(own, beside, weights, partial(_salient, batch))
            if not (torch.equal(own, kept[0]) and torch.equal(beside, kept[1])):
                raise BrokenError("`mix` modifies the images that it is given")
            if not mixed.isfinite().all():
                raise BrokenError(f"`mix` returned images that are not finite, of {batch} images")
            if found := first_outside([weight]):
                raise BrokenError(
                    f"`mix` returned the label weight {found[1]:g} for a batch of {batch} images; "
                    "label weights must be in [0, 1]"
                )


def _salient(batch: int) -> Tensor:
    return torch.rand(2, batch, 16, 16, generator=torch.Generator().manual_seed(0))


MEMBER_CONTRACTS: Mapping[str, tuple[str, Callable[[Any], None]]] = {
    "model": ("the network returns logits, and `has_batch_norm` is right", _network),
    "law": ("quantiles increase within [0, 1], and draws have this distribution", _law),
    "operation": ("label weights are in [0, 1], and its input images stay unchanged", _mixing),
}
"""Additional check by noun of the entry: a statement, and the function that checks it."""
AT_ENDS: Mapping[str, Callable[[Any], None]] = {
    "model": _network,
    "law": _weights,
    "operation": partial(_mixing, sizes=(7, 41)),
}
"""Check of an entry with a field at the end of its range, by noun."""
