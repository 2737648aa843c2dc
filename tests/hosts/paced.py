"""A probe that sleeps, so that eight runs of a test train at the same time on two CPUs."""

import time
from dataclasses import dataclass

from mixsweep.plugins import Metric, Probe


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause(Probe):
    """Sleeps for half a second after each epoch."""

    tag = "pause"
    metrics = {"train/pause": Metric(label="pause")}  # noqa: RUF012  as a plugin is written

    def measure(self, subject):  # noqa: ANN001, ANN201
        """Sleep."""
        del subject
        time.sleep(0.5)
        return {"train/pause": 0.5}
