"""A probe that waits, so that eight runs of a test train side by side on two CPUs."""

import time
from dataclasses import dataclass

from mixsweep.plugins import Metric, Probe


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause(Probe):
    """Half a second after each epoch."""

    tag = "pause"
    metrics = {"train/pause": Metric(label="pause")}  # noqa: RUF012  as a plugin is written

    def measure(self, subject):  # noqa: ANN001, ANN201
        """Wait."""
        del subject
        time.sleep(0.5)
        return {"train/pause": 0.5}
