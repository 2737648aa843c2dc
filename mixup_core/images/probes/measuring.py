"""Measuring: the values of the probes that are due after an epoch."""

from collections.abc import Mapping, Sequence, Set
from numbers import Real

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
            before = _copies(subject) if is_of_plugin(probe) else None
            values = _numbers(probe.tag, probe.metrics.keys(), probe.measure(subject))
            found |= {name: value for name, value in values.items() if name in names}
            if before is not None:
                _require_unchanged(probe, subject, before)
    return found


def _copies(subject: Subject) -> dict[str, tuple[bool, bytes | Tensor]]:
    given = _given(subject).items()
    return {name: (tensor.requires_grad, _copy(tensor.detach())) for name, tensor in given}


def _copy(tensor: Tensor) -> bytes | Tensor:
    """Return bytes if they can be read without a wait: they are compared five times as fast."""
    is_plain = tensor.is_cpu and tensor.dtype in {torch.float32, torch.int64, torch.uint8}
    return tensor.numpy().tobytes() if is_plain else tensor.clone()


def _require_unchanged(
    probe: Probe, subject: Subject, before: Mapping[str, tuple[bool, bytes | Tensor]]
) -> None:
    for name, tensor in _given(subject).items():
        is_trained, earlier = before.get(name, (None, b""))
        now = tensor.detach() if isinstance(earlier, Tensor) else _copy(tensor.detach())
        if tensor.requires_grad != is_trained or not _are_equal(now, earlier):
            raise ContractError(probe, f"changed {name}; `measure` must work on copies")


def _are_equal(one: bytes | Tensor, other: bytes | Tensor) -> bool:
    """Return True if all values are equal, NaN included; `allclose` alone is ten times slower."""
    if not (isinstance(one, Tensor) and isinstance(other, Tensor)):
        return one is other or (isinstance(one, bytes) and one == other)
    return torch.equal(one, other) or (
        one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)
    )


def _given(subject: Subject) -> dict[str, Tensor]:
    """Return what a probe could change for later epochs: weights, labels, logits, some pixels."""
    network, images = subject.network, subject.images
    kept = {"the training labels": images.labels}
    kept["the training images"] = images.pixels.values[:_SOME]
    kept |= {f"the network ({name})": part for name, part in network.named_parameters()}
    kept |= {f"the network ({name})": part for name, part in network.named_buffers()}
    kept |= {f"the {split} labels": part.labels for split, part in subject.held_out.items()}
    return kept | {
        f"the {split}{of} logits": part for (split, of), part in subject.evaluated.items()
    }


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
