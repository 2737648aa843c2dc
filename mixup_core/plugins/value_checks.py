"""Value checks: tests that values are in their possible range, and that a probe changes no run."""

import math
from collections.abc import Iterable, Mapping

from mixup_core.plugins.findings import BrokenError
from mixup_core.problem import Metric
from mixup_core.records import EpochRecord

_ROUNDING = 1e-6
"""Largest excess over a bound that counts as float32 rounding; relative if the bound is above 1."""


def require_possible(records: Iterable[EpochRecord], metrics: Mapping[str, Metric]) -> None:
    """Check that the recorded values are finite and in the possible range of their metrics.

    Args:
        records: Records of a run.
        metrics: Metrics to check, by name; other recorded values are ignored.

    Raises:
        BrokenError: If a value is infinite, NaN or out of range.
    """
    for record in records:
        for name in (name for name in metrics if name in record.metrics):
            value, (least, most) = record.metrics[name], metrics[name].bounds
            got = f"got {value} after epoch {record.epoch}"
            if not math.isfinite(value):
                raise BrokenError(f"{name} must be finite, {got}")
            if not _reached(least) <= value <= -_reached(-most):
                raise BrokenError(
                    f"{name} must be in [{least:g}, {most:g}], {got}; correct the value, or the "
                    "bounds in `metrics` (`least`, `most`; with the unit `%` they are 0 and 1)"
                )


def _reached(least: float) -> float:
    """Return a lower bound minus the allowed rounding error."""
    return least - _ROUNDING * max(1.0, abs(least)) if math.isfinite(least) else least


def require_no_effect(
    with_probe: Iterable[tuple[bytes, EpochRecord, object]],
    without: Iterable[tuple[bytes, EpochRecord, object]],
) -> None:
    """Check that a run has equal states, metrics and logits with and without a probe.

    Args:
        with_probe: For each epoch of the run with the probe: the training state after it, its
            record, and the logits of its evaluation.
        without: The same for the run without the probe.

    Raises:
        BrokenError: If the runs differ in more than the values of the probe.
    """
    for (state, record, logits), (own, expected, own_logits) in zip(
        with_probe, without, strict=True
    ):
        at = f"after epoch {record.epoch}"
        if state != own:
            raise BrokenError(
                f"with the probe, a run has other weights or another optimizer state {at} than "
                "without it: `measure` must not modify the network or the images; work on copies"
            )
        changed = sorted(
            name
            for name, value in expected.metrics.items()
            if record.metrics.get(name, math.nan) != value
        )
        if changed:
            raise BrokenError(
                f"with the probe, a run records other values {at} than without it "
                f"({', '.join(changed)}): `measure` must not modify images or logits, nor return "
                "metrics of training"
            )
        if logits != own_logits:
            raise BrokenError(
                f"with the probe, a run stores other predictions {at} than without it: `measure` "
                "must not modify `subject.evaluated`; work on copies"
            )
