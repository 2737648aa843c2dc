"""Metric: the heading and the unit a measured value is shown under."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """How a metric is shown."""

    label: str
    unit: str
    """`%` or `nats`; empty for a pure number."""

    @property
    def scale(self) -> float:
        """Factor from the stored value to the shown one; files keep fractions."""
        return 100.0 if self.unit == "%" else 1.0

    @property
    def heading(self) -> str:
        """Label and unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label


METRICS: dict[str, Metric] = {
    "test/error": Metric(label="test error", unit="%"),
    "test/nll": Metric(label="test NLL", unit="nats"),
    "test/calibration_error": Metric(label="test calibration error", unit="%"),
    "val/error": Metric(label="validation error", unit="%"),
    "val/nll": Metric(label="validation NLL", unit="nats"),
    "val/calibration_error": Metric(label="validation calibration error", unit="%"),
    "train/loss": Metric(label="training loss", unit="nats"),
    "train/excess_loss": Metric(label="excess training loss", unit="nats"),
}
"""Known metrics in the order of columns; others follow by name, under their own name."""


def show(metric: str) -> Metric:
    """Return how a metric is shown; an unknown one under its own name."""
    unknown = Metric(label=metric, unit="%" if metric.endswith("error") else "")
    return METRICS.get(metric, unknown)
