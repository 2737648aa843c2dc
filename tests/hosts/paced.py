"""A probe that sleeps, so that several runs of a test train at the same time on two CPUs."""

import time
from dataclasses import dataclass
from pathlib import Path

from mixsweep.plugins import Metric, Probe

HELD = Path("/mnt/held")
"""While this file exists, runs wait after their tenth epoch. All hosts of a test see it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause(Probe):
    """Sleeps for half a second after each epoch, and from the tenth on as long as runs are held."""

    tag = "pause"
    metrics = {"train/pause": Metric(label="pause")}  # noqa: RUF012  as a plugin is written

    def measure(self, subject):  # noqa: ANN001, ANN201
        """Sleep."""
        time.sleep(0.5)
        while subject.epoch >= 9 and HELD.exists():
            time.sleep(0.2)
        return {"train/pause": 0.5}
