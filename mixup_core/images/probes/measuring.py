"""Measuring: the values of the probes that are due after an epoch."""

from collections.abc import Mapping, Sequence, Set
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from mixup_core.contracts import ContractError, is_of_plugin
from mixup_core.images.probes.probe import Probe
from mixup_core.images.probes.subject import Subject


def probed_values(subject: Subject, probes: Sequence[Probe], eval_every: int) -> dict[str, float]:
    """Return the values of all probes that are due after the epoch of `subject`, by metric name."""
    found: dict[str, float] = {}
    for probe in probes:
        if (subject.epoch + 1) % (probe.every or eval_every) == 0:
            names = {name for name in probe.metrics if probe.lacks(subject, name) is None}
            if not names:
                continue
            before = _copies(subject) if is_of_plugin(probe) else {}
            values = _numbers(probe.tag, probe.metrics.keys(), probe.measure(subject))
            found |= {name: value for name, value in values.items() if name in names}
            if before:
                _require_unchanged(probe, subject, before)
    return found


def _copies(subject: Subject) -> dict[str, tuple[Any, ...]]:
    """Return what a probe could change for later epochs: weights, labels, logits, some pixels."""
    network, images = subject.network, subject.images
    given = {
        "the training labels": images.labels,
        "the training images": images.pixels.values[:_SOME],
        **{f"the network ({name})": part for name, part in network.named_parameters()},
        **{f"the network ({name})": part for name, part in network.named_buffers()},
        **{f"the {split} labels": part.labels for split, part in subject.held_out.items()},
        **{f"the {split}{of} logits": part for (split, of), part in subject.evaluated.items()},
    }
    return {name: (part.requires_grad, part.shape, _bits(part)) for name, part in given.items()}


def _bits(tensor: Tensor) -> bytes:
    """Return the values of a tensor, also those that are NaN, in a form that compares fast."""
    return tensor.detach().cpu().flatten().view(torch.uint8).numpy().tobytes()


def _require_unchanged(
    probe: Probe, subject: Subject, before: Mapping[str, tuple[Any, ...]]
) -> None:
    after = _copies(subject)
    for name in [*before, *after]:
        if after.get(name) != before.get(name):
            raise ContractError(probe, f"changed {name}; `measure` must work on copies")


_SOME = 32
"""Number of training images that are compared before and after a probe."""


def _numbers(tag: str, declared: Set[str], values: object) -> Mapping[str, float]:
    """Return the values that a probe measured."""
    if not isinstance(values, Mapping):
        raise TypeError(
            f"`measure` of the probe {tag} must return a dict of numbers, "
            f"got {type(values).__name__}"
        )
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            shape = f" of shape {tuple(value.shape)}" if isinstance(value, Tensor) else ""
            raise TypeError(
                f"`measure` of the probe {tag} must return numbers, got {name} as "
                f"{type(value).__name__}{shape}; convert a tensor of one value with float()"
            )
    if unknown := sorted(values.keys() - declared):
        raise ValueError(
            f"`measure` of the probe {tag} returns {', '.join(unknown)}, "
            "which its `metrics` do not declare; declare them there"
        )
    return values
