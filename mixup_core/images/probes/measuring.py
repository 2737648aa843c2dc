"""Measuring: the values of the probes that are due after an epoch."""

from collections.abc import Mapping, Sequence, Set
from numbers import Real

from torch import Tensor

from mixup_core.images.probes.probe import Probe
from mixup_core.images.probes.subject import Subject


def probed_values(subject: Subject, probes: Sequence[Probe], eval_every: int) -> dict[str, float]:
    """Return the values of all probes that are due after the epoch of `subject`, by metric name.

    Args:
        subject: The network and the images.
        probes: Probes of the run.
        eval_every: Number of epochs between measurements, for probes without their own.

    Raises:
        TypeError: If a probe returns anything but numbers by name.
        ValueError: If a probe returns a value that its `metrics` do not declare.
    """
    found: dict[str, float] = {}
    for probe in probes:
        if (subject.epoch + 1) % (probe.every or eval_every) == 0:
            found |= _numbers(probe.tag, probe.metrics.keys(), probe.measure(subject))
    return found


def _numbers(tag: str, declared: Set[str], values: object) -> Mapping[str, float]:
    """Return the values that a probe measured.

    Raises:
        TypeError: If they are not numbers by name; a tensor is not a number.
        ValueError: If the `metrics` of the probe do not declare one of them.
    """
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
