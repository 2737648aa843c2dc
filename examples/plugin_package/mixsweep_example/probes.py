"""Measure how sure a network is of its training images."""

from dataclasses import dataclass

from mixsweep.plugins import Metric, Probe


@dataclass(frozen=True, kw_only=True, slots=True)
class Confidence(Probe):
    """Mean probability of the class predicted, over the training images as they are."""

    tag = "confidence"
    metrics = {  # noqa: RUF012
        "train/confidence": Metric(
            label="mean confidence, training images", unit="%", is_lower_better=False
        )
    }

    def measure(self, subject):
        """Return the value by the name of its metric."""
        logits, _ = subject.outputs()
        return {"train/confidence": float(logits.double().softmax(1).amax(1).mean())}
